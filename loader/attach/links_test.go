package attach

import (
	"sync"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/xdpmon/xdpmon/tests/isolated"
)

// While links are created, one of them always has an id and cannot be opened yet.
func TestStatusWhileLinksAreMade(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	d, err := Inspect(lab.Near)
	lab.NoError(t, err)
	stop := make(chan struct{})
	var makers sync.WaitGroup
	for range 4 {
		prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL",
			Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()}})
		lab.NoError(t, err)
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
				if err := (LinkHold{l}).Release(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	defer makers.Wait()
	defer close(stop)
	for range 3000 {
		if err := EachLink(func(link.Link, *link.Info) bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
}
