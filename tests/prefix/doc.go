// Package prefix tests prefix tables in the kernel.
package prefix
