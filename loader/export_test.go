package loader

// Explain is looked at from outside: what the tests need besides imports this package.
var Explain = explain
