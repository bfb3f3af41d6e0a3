// Tables that scroll are reached by keyboard as well.
addEventListener("load", () => {
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((wrap, at) => {
    wrap.tabIndex = 0;
    wrap.setAttribute("role", "region");
    wrap.setAttribute("aria-label", `Table ${at + 1}`);
  });
});
