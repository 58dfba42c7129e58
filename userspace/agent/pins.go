package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/xdpmon/xdpmon/loader/pin"
)

// pinPrefix distinguishes an agent's pins from those of other commands.
const pinPrefix = "agent-"

var plain = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// pinName is the name of an instance's pin: readable, valid, and unique to the instance.
func pinName(instance string) string {
	name := plain.ReplaceAllString(instance, "-")
	if sum := sha256.Sum256([]byte(instance)); name != instance || len(name) > 40 {
		name = name[:min(len(name), 40)] + "-" + hex.EncodeToString(sum[:6])
	}
	return pinPrefix + name
}

// dropPins removes an earlier agent's pins of instances that are no longer wanted.
func (a *Agent) dropPins(wanted map[string]desired) {
	keep := map[string]bool{}
	for name, d := range wanted {
		if d.rule.Pin != "" {
			keep[pinName(name)] = true
		}
	}
	for _, name := range pin.Names(a.cfg.BPFFS) {
		if !strings.HasPrefix(name, pinPrefix) || keep[name] {
			continue
		}
		removed, err := pin.Abandon(a.cfg.BPFFS, name)
		if err != nil {
			a.log.Warn("remove pins of an earlier agent failed", "pin", name, "error", err)
		} else if removed {
			a.log.Info("removed pins of an earlier agent", "pin", name)
		}
	}
}
