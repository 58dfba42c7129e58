package attach

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Hook is where a program is attached.
type Hook string

// HookAuto takes XDP on hardware and TC where native XDP costs more than it saves; see ChooseHooks.
const (
	HookAuto Hook = "auto"
	HookXDP  Hook = "xdp"
	HookTC   Hook = "tc"
	// HookSent is the start of transmission. It cannot be chosen: it is used where an algorithm watches queues.
	HookSent Hook = "trace"
)

// Mode is how an XDP program runs: in the driver (native) or after the allocation of the skb (generic).
type Mode string

// ModeAuto tries native and falls back to generic with a warning. ModeNative is the default and never falls back.
const (
	ModeNative  Mode = "native"
	ModeGeneric Mode = "generic"
	ModeAuto    Mode = "auto"
)

// Direction is which packets are seen: those that arrive, those that leave, or both.
type Direction string

// Egress is seen at TC only: XDP runs on reception.
const (
	Ingress Direction = "ingress"
	Egress  Direction = "egress"
	Both    Direction = "both"
)

// Hooks, Modes and Directions are the accepted values, for flags and shell completion.
var (
	Hooks      = []Hook{HookAuto, HookXDP, HookTC}
	Modes      = []Mode{ModeNative, ModeGeneric, ModeAuto}
	Directions = []Direction{Ingress, Egress, Both}
)

// ErrUsage is wrapped by errors in the options, as opposed to failures of this machine.
var ErrUsage = errors.New("wrong usage")

// Options define how to attach to an interface. The zero value is hook auto, mode native, direction ingress.
type Options struct {
	Hook      Hook
	Mode      Mode
	Direction Direction
	// Notice receives messages for the operator: the hook that was chosen and why, fallbacks, other
	// owners' programs, offloads that changed. They are also stored in Attachment.Notices.
	Notice func(format string, args ...any)

	// withoutTCX makes TC use the clsact qdisc as on kernels below 6.6, for tests.
	WithoutTCX bool
	// fail is called before each step and may return an error, for tests of the rollback.
	Fail func(step string) error
}

// Seeing returns the options for a chain: one that watches queues is attached at egress, too.
func (o Options) Seeing(src Source) Options {
	if o.Direction == Ingress && src.WatchesQueues() {
		o.Direction = Egress
		if o.Hook == HookXDP {
			o.Direction = Both
		}
	}
	return o
}

func (o Options) WithDefaults() Options {
	if o.Hook == "" {
		o.Hook = HookAuto
	}
	if o.Mode == "" {
		o.Mode = ModeNative
	}
	if o.Direction == "" {
		o.Direction = Ingress
	}
	return o
}

// Check refuses values that do not exist and combinations that cannot work.
func (o Options) Check() error {
	if err := oneOf("hook", o.Hook, Hooks); err != nil {
		return err
	}
	if err := oneOf("mode", o.Mode, Modes); err != nil {
		return err
	}
	if err := oneOf("direction", o.Direction, Directions); err != nil {
		return err
	}
	if o.Hook == HookXDP && o.Direction == Egress {
		return fmt.Errorf("%w: direction egress with hook xdp: XDP sees arriving packets only; use hook tc or auto", ErrUsage)
	}
	if o.Hook == HookTC && o.Mode == ModeGeneric {
		return fmt.Errorf("%w: mode generic with hook tc: modes belong to XDP; use hook xdp", ErrUsage)
	}
	return nil
}

func (o Options) step(name string) error {
	if o.Fail == nil {
		return nil
	}
	return o.Fail(name)
}

func oneOf[T ~string](what string, v T, allowed []T) error {
	if slices.Contains(allowed, v) {
		return nil
	}
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = string(a)
	}
	return fmt.Errorf("%w: %s %q: want one of %s", ErrUsage, what, string(v), strings.Join(names, ", "))
}
