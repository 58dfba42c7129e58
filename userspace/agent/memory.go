package agent

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/xdpmon/xdpmon/userspace/agent/config"
)

// accounts tracks the register memory of instances, to keep its sum below the limit.
type accounts struct {
	mu   sync.Mutex
	most int64
	of   map[string]int64
	last struct { // rule whose memory was computed last: it may have hundreds of instances
		rule  config.Instance
		bytes int64
	}
}

// memory of an instance of a rule.
func (m *accounts) memory(r config.Instance) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last.bytes > 0 && reflect.DeepEqual(m.last.rule, r) {
		return m.last.bytes, nil
	}
	bytes, err := r.Memory()
	if err == nil {
		m.last.rule, m.last.bytes = r, bytes
	}
	return bytes, err
}

func (m *accounts) limit(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.most = bytes
}

// reserve the memory of an instance before it is loaded.
func (m *accounts) reserve(name string, r config.Instance) (int64, error) {
	bytes, err := m.memory(r)
	if err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if rest := m.most - m.sum() + m.of[name]; bytes > rest {
		return 0, fmt.Errorf("it needs %d bytes of registers, limits.memory leaves %d of %d", bytes, rest, m.most)
	}
	m.put(name, bytes)
	return bytes, nil
}

// back restores the memory of an instance whose change has failed.
func (m *accounts) back(name string, r config.Instance) {
	bytes, err := m.memory(r)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(name, bytes)
}

// room is how many more instances fit into the memory.
func (m *accounts) room(r config.Instance) int {
	bytes, err := m.memory(r)
	if err != nil || bytes == 0 {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return int(max(m.most-m.sum(), 0) / bytes)
}

func (m *accounts) put(name string, bytes int64) {
	if m.of == nil {
		m.of = map[string]int64{}
	}
	m.of[name] = bytes
}

func (m *accounts) release(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, name)
}

// used returns the memory of all instances, and of one, in bytes.
func (m *accounts) used(name string) (all, one int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sum(), m.of[name]
}

func (m *accounts) sum() (n int64) {
	for _, bytes := range m.of {
		n += bytes
	}
	return n
}
