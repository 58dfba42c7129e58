package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/loader/detach"
	"github.com/xdpmon/xdpmon/loader/features"
	"github.com/xdpmon/xdpmon/loader/pisa"
	"github.com/xdpmon/xdpmon/loader/privilege"
	"github.com/xdpmon/xdpmon/loader/status"
	"github.com/xdpmon/xdpmon/userspace/agent"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// engine holds the functions that verbs call; tests replace them.
type engine struct {
	// privilege returns an error that names what this process lacks for loading and attaching, before another step fails for that reason.
	privilege func() error
	replay    func(ctx context.Context, cfg session.Config, files []string, stdin io.Reader, progress func(session.Progress)) error
	live      func(ctx context.Context, cfg session.LiveConfig) error
	// settle drops, for the whole process and permanently, the privileges that are not needed once everything is attached.
	settle func() error
	// settleAgent is settle for a process that loads and attaches later; it returns the privileges that stay.
	settleAgent func() ([]string, error)
	agent       func(ctx context.Context, o agent.Options) error
	probe       func(iface string) (features.Features, error)
	status      func() ([]status.Attachment, error)
	// detach detaches xdpmon's programs from an interface and returns a message for each.
	detach func(iface string) ([]string, error)
	// program finds another program of xdpmon's, and become replaces this process by it.
	program func(name string) (path string, err error)
	become  func(path string, argv []string) error
	prove   func(algorithm string, spec *ebpf.CollectionSpec) (proof, error)
}

// proof is the prover's report of one object.
type proof interface {
	Text() string
	json.Marshaler
}

func realEngine() engine {
	return engine{
		privilege: privilege.Check, replay: session.Replay, live: session.Live, settle: settle, settleAgent: func() ([]string, error) { return privilege.Drop(privilege.Keep{Reattach: true, Load: true}) }, agent: agent.Run,
		probe: features.Probe, status: status.List, detach: detach.Detach, program: cli.FindProgram, become: cli.Become, prove: prove,
	}
}

func settle() error {
	_, err := privilege.Drop(privilege.Keep{Reattach: true})
	return err
}

func prove(algorithm string, spec *ebpf.CollectionSpec) (proof, error) {
	r, err := pisa.Prove(spec)
	if r == nil {
		return nil, err
	}
	return proofReport{r.Name(algorithm)}, err
}

// proofReport is a pisa.Report as a proof.
type proofReport struct{ report *pisa.Report }

// Text is the report as tables.
func (p proofReport) Text() string {
	var b strings.Builder
	if err := p.report.WriteText(&b); err != nil {
		return err.Error() // a strings.Builder never fails
	}
	return b.String()
}

// MarshalJSON is the report alone.
func (p proofReport) MarshalJSON() ([]byte, error) { return json.Marshal(p.report) }
