package agent

import (
	"errors"
	"io"
	"log"
	"log/slog"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/agent/config"
	"github.com/xdpmon/xdpmon/userspace/prom"
	"github.com/xdpmon/xdpmon/userspace/store"
)

// opened is what a configuration needs of the system, and what the running one does not have: everything that can fail is tried before
// anything of the running one is given up.
type opened struct {
	cfg    *config.Config
	files  []io.WriteCloser // one an output
	store  *store.Store
	server *prom.Server
	socket *socket
}

func (a *Agent) prepare(cfg *config.Config) (*opened, error) {
	o := &opened{cfg: cfg}
	if err := o.open(a); err != nil {
		return nil, errors.Join(err, o.close())
	}
	return o, nil
}

func (o *opened) open(a *Agent) (err error) {
	for _, out := range o.cfg.Outputs {
		f, err := openOutput(out, a.opts.Stdout)
		if err != nil {
			return err
		}
		o.files = append(o.files, f)
	}
	if s := o.cfg.Store; s != nil && (a.kept == nil || a.kept.cfg.Path != s.Path) {
		if o.store, err = openStore(*s, a.log); err != nil {
			return err
		}
	}
	if l := o.cfg.Listen; l != "" && (a.servers.http == nil || a.servers.listen != l) {
		address, _, err := prom.Address(l)
		if err != nil {
			return err
		}
		if o.server, err = prom.Serve(address, a.handler(), log.New(logWriter{a.log}, "", 0)); err != nil {
			return err
		}
	}
	if a.servers.socket == nil || a.servers.socket.path != o.cfg.Socket {
		if o.socket, err = listenSocket(o.cfg.Socket, a.handler()); err != nil {
			a.log.Warn("xdpmon history cannot ask this agent", "error", err)
		}
	}
	return nil
}

func (o *opened) close() error {
	var errs []error
	for _, f := range o.files {
		errs = append(errs, f.Close())
	}
	if o.store != nil {
		errs = append(errs, o.store.Close())
	}
	if o.server != nil {
		errs = append(errs, o.server.Close())
	}
	return errors.Join(append(errs, o.socket.close())...)
}

// commit takes what was opened; what the configuration does not have any more ends.
func (a *Agent) commit(o *opened) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.metrics.ShowRows(o.cfg.MetricsRows)
	var outputs []*output
	for i, c := range o.cfg.Outputs {
		at := slices.IndexFunc(a.outputs, func(x *output) bool { return x.cfg == c })
		if at < 0 {
			outputs = append(outputs, newOutput(c, o.files[i], &a.hub, a.log))
			continue
		}
		a.outputs[at].reopen(o.files[i])
		outputs = append(outputs, a.outputs[at])
	}
	for _, x := range a.outputs {
		if !slices.Contains(outputs, x) {
			x.leave()
		}
	}
	a.outputs = outputs
	a.keep(o)
	a.serve(o)
}

func (a *Agent) keep(o *opened) {
	s := o.cfg.Store
	switch {
	case a.kept != nil && s != nil && o.store == nil:
		a.kept.store.Limit(s.MaxAge, s.MaxBytes)
		return
	case a.kept != nil:
		a.kept.sub.Leave()
		if err := a.kept.close(); err != nil {
			a.log.Error("close the store", "error", err)
		}
		a.kept = nil
	}
	if s != nil {
		a.kept = newKeeper(*s, o.store, &a.hub, a.log)
	}
}

func (a *Agent) serve(o *opened) {
	if o.server != nil || o.cfg.Listen == "" {
		if a.servers.http != nil {
			_ = a.servers.http.Close()
		}
		a.servers.http, a.servers.listen = o.server, o.cfg.Listen
		if o.server != nil {
			a.log.Info("metrics, page and health", "address", o.server.Address())
		}
	}
	if o.socket != nil {
		_ = a.servers.socket.close()
		a.servers.socket = o.socket
	}
}

// logWriter carries complaints of the HTTP server to the log.
type logWriter struct{ log *slog.Logger }

func (w logWriter) Write(b []byte) (int, error) {
	w.log.Warn(string(b))
	return len(b), nil
}
