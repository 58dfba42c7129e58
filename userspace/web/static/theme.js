"use strict";
// Before anything is drawn: the theme that was chosen here, or the system's.
{
	const chosen = localStorage.getItem("theme");
	document.documentElement.dataset.theme = chosen || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}
