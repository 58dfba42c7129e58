package loader

import (
	"sync"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// While somebody makes links, one of them is always half made: it has a number and cannot be opened yet.
func TestStatusWhileLinksAreMade(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	d, err := inspect(near)
	noError(t, err)
	stop := make(chan struct{})
	var makers sync.WaitGroup
	for range 4 {
		prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL",
			Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()}})
		noError(t, err)
		defer prog.Close()
		makers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				l, err := link.AttachTCX(link.TCXOptions{Program: prog, Interface: d.Index, Attach: ebpf.AttachTCXIngress})
				if err != nil {
					t.Error(err)
					return
				}
				if err := (linkHold{l}).release(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	defer makers.Wait()
	defer close(stop)
	for range 3000 {
		if err := eachLink(func(link.Link, *link.Info) bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
}
