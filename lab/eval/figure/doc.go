// Package figure draws what an evaluation found: tables in Markdown and curves in SVG, for people who read them on a
// screen or on paper. It knows no algorithm.
package figure
