package config

import (
	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/config/parts"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// Memory is the kernel memory of one instance's registers, in bytes, computed without loading.
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

// checkMemory refuses rules that exceed the limit before anything is loaded. The number of interfaces of a rule with each is not
// known: one has to fit, and the agent stops at the limit.
func checkMemory(p *parser, at func(string) *yaml.Node, c *Config) {
	if len(p.Problems) > 0 {
		return
	}
	var sum int64
	for i, r := range c.Instances {
		if r.Shared { // its algorithms are set by the coordinator: their memory is checked then
			continue
		}
		n, err := r.Memory()
		if err != nil {
			p.Errorf(parts.NameNode(at("instances"), i), "%s", err)
			return
		}
		sum += n
	}
	if sum > c.Limits.Memory {
		p.Errorf(at("limits"), "one instance of every rule needs %d bytes of registers, limits.memory allows %d", sum, c.Limits.Memory)
	}
	if len(c.Instances) > c.Limits.Instances {
		p.Errorf(at("limits"), "there are %d instances, limits.instances allows %d", len(c.Instances), c.Limits.Instances)
	}
}
