package loader

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// child is a process that has said that it is ready.
type child struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	output *bufio.Reader
}

// startHelper runs a helper and waits for the line "ready".
func startHelper(t *testing.T, format string, args ...any) *child {
	t.Helper()
	cmd := helperProcess(format, args...)
	in, err := cmd.StdinPipe()
	noError(t, err)
	out, err := cmd.StdoutPipe()
	noError(t, err)
	noError(t, cmd.Start())
	c := &child{cmd, in, bufio.NewReader(out)}
	t.Cleanup(func() { _ = c.kill() })
	for {
		line, err := c.output.ReadString('\n')
		if err != nil {
			t.Fatalf("the child ended before it was ready: %v", err)
		}
		if strings.HasPrefix(line, "ready") {
			return c
		}
		t.Log("child: ", strings.TrimSpace(line))
	}
}

func startAttached(t *testing.T, hook string) *child { return startHelper(t, "attach %s", hook) }

// kill ends the child with SIGKILL and waits until the kernel has taken everything back.
func (c *child) kill() error {
	if c.cmd.ProcessState != nil {
		return nil
	}
	if err := c.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = c.cmd.Wait() // "signal: killed"
	return nil
}
