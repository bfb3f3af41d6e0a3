// What pages with a script share. Names and labels: shortened in the middle where they do not fit, measured, the whole in a title.
"use strict";
const labels = (() => {
  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "style") made.style.cssText = value;
      else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  const pieces = (text) => (Intl.Segmenter ? [...new Intl.Segmenter().segment(text)].map((s) => s.segment) : [...text]);

  function shortened(text, most) {
    const parts = pieces(text);
    if (parts.length <= most) return text;
    const left = Math.floor((most - 1) / 2);
    return parts.slice(0, left).join("") + "…" + parts.slice(parts.length - (most - 1 - left)).join("");
  }

  // A label of a figure: as much of it as fits, measured; its title has the whole.
  function setLabel(text, words, whole = words) {
    const room = Number(text.dataset.room);
    let most = pieces(words).length, shown = words;
    text.textContent = shown;
    while (most > 3 && text.getBBox().width > room) { most -= 1; shown = shortened(words, most); text.textContent = shown; }
    if (shown !== whole) {
      const title = document.createElementNS(text.namespaceURI, "title");
      title.textContent = whole;
      text.prepend(title);
    }
  }

  // Fonts differ: what Python left room for is measured where it is drawn, and shortened where it does not fit.
  function fitLabels() {
    for (const text of document.querySelectorAll("svg.figure text[data-room]")) {
      const title = text.querySelector("title");
      if (text.getBBox().width > Number(text.dataset.room)) setLabel(text, title ? title.textContent : text.textContent);
    }
  }

  // A hint above each table that goes on to the right.
  function scrollHints() {
    for (const box of document.querySelectorAll(".scroll")) {
      const wide = box.scrollWidth > box.clientWidth + 1;
      let hint = box.previousElementSibling;
      if (!hint || !hint.classList.contains("hint")) {
        if (!wide) continue;
        hint = element("p", { class: "hint" }, "Scroll sideways for the rest →");
        box.before(hint);
      }
      hint.hidden = !wide;
    }
  }

  const ruler = document.createElement("canvas").getContext("2d");
  const family = getComputedStyle(document.body).fontFamily;
  const widthOf = (text, size) => {
    ruler.font = `600 ${size}px ${family}`;
    return ruler.measureText(text).width;
  };

  // An element that shows a name shortened in its middle until it fits, measured; its title has the whole.
  function named(name, pixels, size = 13, tag = "span", attributes = {}) {
    let short = name;
    for (let most = Math.min(pieces(name).length, Math.ceil(pixels / 3)); most > 3 && widthOf(short, size) > pixels; most--) short = shortened(name, most);
    return element(tag, short === name ? attributes : { ...attributes, title: name }, element("bdi", {}, short));
  }

  // The button that goes through the colours: as the system has them, light, dark.
  function themes() {
    const names = ["auto", "light", "dark"], words = ["as the system", "light", "dark"];
    const button = document.getElementById("theme");
    button.addEventListener("click", () => {
      const root = document.documentElement, at = (names.indexOf(root.dataset.theme) + 1) % 3;
      root.dataset.theme = names[at];
      button.setAttribute("aria-label", "Colours: " + words[at]);
      button.querySelector("span").textContent = names[at];
    });
  }

  return { element, fitLabels, named, scrollHints, setLabel, shortened, themes };
})();
