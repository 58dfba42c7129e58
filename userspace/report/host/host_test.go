package host

import (
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/features"
	"github.com/xdpmon/xdpmon/loader/kernel"
	"github.com/xdpmon/xdpmon/loader/status"
)

// A remedy is below what is missing, and nowhere else.
func TestFeatures(t *testing.T) {
	f := features.Features{Kernel: "6.1", Arch: "x86_64", CPUs: 4, Host: []features.Feature{
		{Name: "there", State: kernel.Supported, Detail: "since 5.10", Remedy: "none is needed"},
		{Name: "absent", State: kernel.Unsupported, Remedy: "a newer kernel"},
		{Name: "needed", State: kernel.Unsupported, Required: true},
		{Name: "hidden", State: kernel.Unknown, Detail: "not allowed", Remedy: "as root"},
	}}
	want := `kernel 6.1, x86_64, 4 possible CPUs
  yes      there   since 5.10
  no       absent
           a newer kernel
  MISSING  needed
  unknown  hidden  not allowed
           as root`
	if got := strings.Join(Features(f), "\n"); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
	f.Host = nil
	f.Interface = &features.InterfaceFeatures{Name: "eth0", MTU: 1500, AutoHook: "xdp", Why: "it can", List: []features.Feature{{Name: "native", State: kernel.Supported}}}
	for kind, want := range map[string]string{"": "of unknown type", "veth": "veth"} {
		f.Interface.Kind = kind
		want = "kernel 6.1, x86_64, 4 possible CPUs\n\neth0: " + want + ", MTU 1500 bytes; --hook auto takes xdp: it can\n  yes  native"
		if got := strings.Join(Features(f), "\n"); got != want {
			t.Errorf("\n%s\nwant\n%s", got, want)
		}
	}
}

// Programs that are attached, with their owners; enforcers and problems are below.
func TestStatus(t *testing.T) {
	one := status.Attachment{Interface: "eth0", Occupant: attach.Occupant{Via: "xdp", Direction: "ingress", Mode: "native", Program: 7, PIDs: []int{3, 4}}, Instance: 9,
		Algorithms: []string{"lean", "hhh"}, Pin: "p", Packets: 1200}
	two := status.Attachment{Index: 5, Occupant: attach.Occupant{Via: "tcx", Direction: "egress", Program: 8}, Instance: 10, Verdicts: &status.Verdicts{Dropped: 3, Marked: 4}, Problem: "it is old"}
	want := `INTERFACE                                           HOOK                  INSTANCE  ALGORITHMS  PACKETS  HELD BY
eth0                                                xdp ingress (native)  9         lean, hhh   1,200    pin p, process 3, process 4
(index 5, removed or in another network namespace)  tcx egress            10        none        0        no process that this user can see
(index 5, removed or in another network namespace): instance 10 acts on packets: 3 dropped, 4 marked in this window
(index 5, removed or in another network namespace): program 8: it is old`
	if got := strings.Join(Status([]status.Attachment{one, two}), "\n"); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
	if got := Status(nil); len(got) != 1 || got[0] != "nothing of xdpmon is attached on this host" {
		t.Errorf("%q", got)
	}
}
