// Package syntax reads the P4-16 that the twins are written in: preprocessor, tokens, grammar. What it does not know is an
// error with file and line, never skipped. Types and meaning are package run's.
package syntax
