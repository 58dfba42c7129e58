// Package lang compiles P4-16, as far as twins use it, into steps of a machine: types, expressions, statements, controls, tables and
// parsers. What an architecture adds are externs, which package run brings.
package lang
