// Package all registers every twin: the folders of p4 with a twin.go.
package all

//go:generate go run ../../userspace/all/gen -root ../.. -of p4 -with p4/NAME/twin.go -out twins_gen.go
