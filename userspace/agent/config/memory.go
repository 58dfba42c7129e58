package config

import (
	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/config/parts"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// Memory is what the registers of one instance of a rule take in the kernel, in bytes. Nothing is loaded to know it.
func (i Instance) Memory() (int64, error) {
	objects, _, err := session.Objects(i.Session().Config, false)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, o := range objects {
		sum += maps.SpecMemory(o.Spec)
	}
	return sum, nil
}

// checkMemory refuses what does not fit before anything is loaded. How many interfaces a rule with registers for each will find is not
// known: one has to fit, and the agent stops at the limit.
func checkMemory(p *parser, at func(string) *yaml.Node, c *Config) {
	if len(p.Problems) > 0 {
		return
	}
	var sum int64
	for i, r := range c.Instances {
		if r.Shared { // what it will be, the coordinator says: what does not fit is refused then
			continue
		}
		n, err := r.Memory()
		if err != nil {
			p.Say(parts.NameNode(at("instances"), i), "%s", err)
			return
		}
		sum += n
	}
	if sum > c.Limits.Memory {
		p.Say(at("limits"), "one of every instance takes %d bytes of registers, limits.memory allows %d", sum, c.Limits.Memory)
	}
	if len(c.Instances) > c.Limits.Instances {
		p.Say(at("limits"), "there are %d instances, limits.instances allows %d", len(c.Instances), c.Limits.Instances)
	}
}
