// Looks at a page as a reader with weak eyes, a keyboard or a phone would: contrast of all text, names of
// all controls, ids, roles, nothing wider than the window. Gives a list of sentences, empty where all is well.
(() => {
    const problems = [];

    function colour(text) {
        const parts = text.match(/[\d.]+/g)?.map(Number) ?? [];
        if (text.startsWith("color(srgb")) return { rgb: parts.slice(0, 3).map((part) => part * 255), alpha: parts[3] ?? 1 };
        return { rgb: parts.slice(0, 3), alpha: parts[3] ?? 1 };
    }
    const over = (top, bottom) => top.rgb.map((part, i) => part * top.alpha + bottom[i] * (1 - top.alpha));
    function luminance(rgb) {
        const [r, g, b] = rgb.map((part) => {
            const share = part / 255;
            return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    }
    function contrast(a, b) {
        const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
        return (high + 0.05) / (low + 0.05);
    }
    /** The ground of an element: colours of its ancestors, from the root to it; in SVG also the box before a text. */
    function ground(node) {
        const chain = [];
        for (let at = node; at; at = at.parentElement) chain.unshift(at);
        let rgb = [255, 255, 255];
        for (const at of chain) rgb = over(colour(getComputedStyle(at).backgroundColor), rgb);
        const box = node.closest(".graph-node, .graph-edge")?.querySelector("rect");
        if (box) rgb = over(colour(getComputedStyle(box).fill), rgb);
        return rgb;
    }
    const seen = (node) => node.checkVisibility({ opacityProperty: false, visibilityProperty: true }) && !node.closest(".hidden, canvas, option");
    const place = (node) => `<${node.tagName.toLowerCase()}${node.className?.baseVal ?? node.className ? ` class="${node.className?.baseVal ?? node.className}"` : ""}>`;

    let checked = 0;
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let text = walker.nextNode(); text; text = walker.nextNode()) {
        const node = text.parentElement;
        if (!text.data.trim() || !seen(node) || node.closest("script, style, noscript, title")) continue;
        const style = getComputedStyle(node);
        const ink = node.ownerSVGElement ? colour(style.fill) : colour(style.color);
        const back = ground(node);
        const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 600);
        const ratio = contrast(over(ink, back), back);
        checked += 1;
        if (ratio < (large ? 3 : 4.5)) problems.push(`contrast ${ratio.toFixed(2)} of “${text.data.trim().slice(0, 30)}” in ${place(node)}`);
        if (parseFloat(style.fontSize) < 11) problems.push(`text of ${style.fontSize} in ${place(node)}`);
    }
    for (const field of document.querySelectorAll("input[placeholder]")) {
        const ratio = contrast(over(colour(getComputedStyle(field, "::placeholder").color), ground(field)), ground(field));
        if (ratio < 4.5) problems.push(`contrast ${ratio.toFixed(2)} of the placeholder “${field.placeholder}”`);
        const border = contrast(colour(getComputedStyle(field).borderTopColor).rgb, ground(field.parentElement));
        if (border < 3) problems.push(`contrast ${border.toFixed(2)} of the border of “${field.placeholder}”`);
    }
    // Bars and curves carry meaning: 3 to the ground.
    for (const mark of document.querySelectorAll(".bar:not(svg), .curve, .swatch, .graph-edge .arrow")) {
        const style = getComputedStyle(mark);
        const text = mark.matches(".curve") ? style.stroke : mark.matches(".swatch") ? style.backgroundColor : style.fill;
        const ratio = contrast(colour(text).rgb, ground(mark.parentElement));
        if (ratio < 3) problems.push(`contrast ${ratio.toFixed(2)} of ${place(mark)}`);
    }
    // Not innerWidth, which grows with the content where the browser plays a phone.
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth > clientWidth) {
        const wide = [...document.querySelectorAll("body *")].filter((node) => node.getBoundingClientRect().right > clientWidth + 1);
        problems.push(`the page is ${scrollWidth} px wide in a window of ${clientWidth}: ${wide.slice(0, 3).map(place).join(" ")}`);
    }
    // A placeholder is a name for the accessibility tree, but goes with the first key.
    for (const field of document.querySelectorAll("input")) {
        if (field.labels.length === 0 && !field.getAttribute("aria-label")) problems.push(`no label: ${place(field)} ${field.placeholder}`);
    }
    const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
    for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) problems.push(`the id ${id} is given twice`);
    for (const attribute of ["aria-controls", "aria-activedescendant", "aria-describedby", "aria-labelledby", "for"]) {
        for (const node of document.querySelectorAll(`[${attribute}]`)) {
            if (!document.getElementById(node.getAttribute(attribute))) problems.push(`${attribute} of ${place(node)} names nothing`);
        }
    }
    if ([...document.querySelectorAll("[tabindex]")].some((node) => node.tabIndex > 0)) problems.push("a tabindex above 0");
    for (const node of document.querySelectorAll("[aria-hidden=true] :is(a[href], button, input, [tabindex='0'])")) problems.push(`hidden but with focus: ${place(node)}`);
    if (document.querySelectorAll("h1").length !== 1) problems.push(`${document.querySelectorAll("h1").length} headings of the first level`);
    const levels = [...document.querySelectorAll("h1, h2, h3, h4")].filter(seen).map((node) => Number(node.tagName[1]));
    levels.forEach((level, i) => { if (i > 0 && level > levels[i - 1] + 1) problems.push(`a heading of level ${level} below one of level ${levels[i - 1]}`); });
    for (const list of document.querySelectorAll("ul, ol")) {
        if ([...list.children].some((child) => child.tagName !== "LI")) problems.push(`${place(list)} has children that are no items`);
    }
    // Targets of a finger: 24 px, or a line of text.
    for (const control of document.querySelectorAll("button")) {
        const box = control.getBoundingClientRect();
        if (seen(control) && (box.width < 24 || box.height < 23.5)) problems.push(`a button of ${box.width.toFixed(0)} x ${box.height.toFixed(0)} px: ${place(control)}`);
    }
    if (checked === 0) problems.push("there is no text");
    return problems;
})()
