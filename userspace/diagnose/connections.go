package diagnose

import (
	"strings"

	"github.com/xdpmon/xdpmon/userspace/finding"
)

// connections handles single connections that wait, each for its own cause: waits has told receiver, path and server apart.
func (v *view) connections() {
	for _, r := range v.active(finding.ReceiverWaits) {
		v.add(finding.SlowReceiver, r.Subject, r, "its receive window is closed or its ACKs are late, longer than the handshake shows for the path",
			steps("ss -tinp on "+receiverOf(r.Subject)+": a large Recv-Q is data that its program does not read", windowsOf(r)))
	}
	for _, r := range v.active(finding.PathWaits) {
		v.add(finding.SlowNetwork, r.Subject, r, "its handshake is late, and what follows is no later than that", steps(v.trace(receiverOf(r.Subject), r), windowsOf(r)))
	}
	for _, r := range v.active(finding.ServerWaits) {
		v.add(finding.SlowServer, r.Subject, r, "its answers are late, its handshake was not", steps("what the service on "+receiverOf(r.Subject)+" did for this connection: its kernel answers in time", windowsOf(r)))
	}
}

// receiverOf is the receiving address of a flow.
func receiverOf(s finding.Subject) string {
	_, to, _ := strings.Cut(s.Name, " > ")
	if i := strings.LastIndexByte(to, ':'); i > 0 {
		to = to[:i]
	}
	return strings.Trim(to, "[]")
}
