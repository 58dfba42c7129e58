// Package lang compiles P4-16, as far as twins use it, into steps of a machine: types, expressions, statements, controls, tables and
// parsers. An architecture adds externs, which package run provides.
package lang
