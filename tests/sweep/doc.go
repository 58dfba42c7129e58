// Package sweep holds no code but tests: they take every registered algorithm the whole way, knowing none of them.
package sweep
