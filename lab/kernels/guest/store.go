package main

import (
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// agentConfig: windows go to the console and into a store on the machine's disk.
const agentConfig = `store: {path: /disk/windows.db}
outputs: [{json: "-"}]
instances:
  - name: a
    interfaces: [lo]
    hook: tc
    window: 2s
    algorithms: {rtt-array: {}}
`

// keepStore runs the agent as long as the machine does.
func keepStore() error {
	if err := os.MkdirAll("/disk", 0o700); err != nil {
		return err
	}
	if err := unix.Mount("/dev/vda", "/disk", "ext4", 0, ""); err != nil {
		return fmt.Errorf("mount the disk: %w", err)
	}
	const config = "/run/agent.yaml"
	if err := os.WriteFile(config, []byte(agentConfig), 0o600); err != nil {
		return err
	}
	agent := exec.Command(binary, "agent", "--config", config)
	agent.Stdout, agent.Stderr = os.Stdout, os.Stderr
	return agent.Run()
}
