// SPDX-License-Identifier: MIT
// The search field of each page. The list of what can be found is in index.js, which build-site
// writes: [title, address from the top of the site, text] of each page and each heading.
"use strict";
const field = document.getElementById("search");
const results = document.getElementById("results");
const top_ = document.currentScript.dataset.top;

// Each word must occur. A match in a title counts more than one in the text below it, and a title
// that begins with the words counts most.
function score(entry, words) {
	const title = entry[0].toLowerCase(), text = entry[2].toLowerCase();
	let sum = 0;
	for (const word of words) {
		const at = title.indexOf(word);
		if (at < 0 && !text.includes(word))
			return 0;
		sum += at < 0 ? 1 : at > 0 ? 4 : 8;
	}
	return sum + 1 / title.length;
}

function find() {
	const words = field.value.toLowerCase().split(/\s+/).filter(word => word);
	const found = words.length === 0 ? [] : window.timerhubIndex
		.map(entry => [score(entry, words), entry]).filter(([points]) => points > 0)
		.sort((a, b) => b[0] - a[0]).slice(0, 12);
	results.replaceChildren(...found.map(([, [title, address, text]]) => {
		const item = document.createElement("li"), link = document.createElement("a");
		link.href = top_ + address;
		link.textContent = title;
		item.append(link, " ", text.length > 90 ? text.slice(0, 90) + " …" : text);
		return item;
	}));
	results.hidden = words.length === 0;
	if (words.length > 0 && found.length === 0)
		results.textContent = "Nothing found.";
}

// The index is fetched when the field is used first, because most readers never search.
field.addEventListener("focus", () => {
	const script = document.createElement("script");
	script.src = top_ + "index.js";
	script.onload = find;
	document.head.append(script);
}, { once: true });
field.addEventListener("input", () => window.timerhubIndex && find());
field.addEventListener("keydown", event => {
	if (event.key === "Escape") {
		field.value = "";
		find();
	} else if (event.key === "Enter" && results.querySelector("a")) {
		results.querySelector("a").click();
	}
});
field.hidden = false;
