package agent

import (
	"fmt"
	"sync"

	"github.com/xdpmon/xdpmon/userspace/agent/config"
)

// accounts are the bytes of registers that instances take, so that all together stay below the limit.
type accounts struct {
	mu   sync.Mutex
	most int64
	of   map[string]int64
}

func (m *accounts) limit(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.most = bytes
}

// reserve what an instance will take, before anything of it is loaded.
func (m *accounts) reserve(name string, r config.Instance) (int64, error) {
	bytes, err := r.Memory()
	if err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if rest := m.most - m.sum() + m.of[name]; bytes > rest {
		return 0, fmt.Errorf("it takes %d bytes of registers, and limits.memory leaves %d of %d", bytes, rest, m.most)
	}
	m.put(name, bytes)
	return bytes, nil
}

// back is what an instance takes that stays as it is.
func (m *accounts) back(name string, r config.Instance) {
	bytes, err := r.Memory()
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(name, bytes)
}

// room is for how many more instances there is memory.
func (m *accounts) room(r config.Instance) int {
	bytes, err := r.Memory()
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

// used are all bytes, and those of one instance.
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
