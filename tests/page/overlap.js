// Pairs of texts or boxes of a path graph that overlap; `root` is the graph's <svg>.
(root) => {
    const boxes = [...root.querySelectorAll(".graph-node rect, .label-ground")].map((node) => ({ box: node.getBBox(), name: node.parentElement.textContent }));
    const texts = [...root.querySelectorAll("text")].map((node) => ({ box: node.getBBox(), holder: node.parentElement.querySelector("rect").getBBox(), name: node.textContent }));
    const found = [];
    boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => {
        if (a.box.x < b.box.x + b.box.width - 0.5 && b.box.x < a.box.x + a.box.width - 0.5
            && a.box.y < b.box.y + b.box.height - 0.5 && b.box.y < a.box.y + a.box.height - 0.5) found.push(`${a.name} | ${b.name}`);
    }));
    for (const { box, holder, name } of texts) {
        if (box.x < holder.x - 1 || box.x + box.width > holder.x + holder.width + 1) found.push(`${name} leaves its box`);
    }
    return found;
}
