package loader

// Explain is exported for external tests: packages that they import import this package.
var Explain = explain
