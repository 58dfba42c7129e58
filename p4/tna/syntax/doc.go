// Package syntax parses the P4-16 that the twins use: preprocessor, tokens, grammar. Anything unknown is an
// error with file and line, never skipped. Package run checks types and gives the meaning.
package syntax
