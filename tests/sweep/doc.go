// Package sweep contains only tests: they take every registered algorithm through all steps, without naming any of them.
package sweep
