package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// packager is what installs and removes.
type packager struct {
	name             string
	install, upgrade string // with the file's name
	remove           string // with the package's name
	purge            string // what removes data, too
	pattern          string // of a package's file: name, version
}

var (
	dpkg = packager{name: "dpkg", install: "apt-get install -y -qq --no-install-recommends %s", upgrade: "apt-get install -y -qq --no-install-recommends %s", remove: "apt-get remove -y -qq %s",
		purge: "apt-get purge -y -qq %s", pattern: "%s_%s_amd64.deb"}
	rpm = packager{name: "rpm", install: "rpm --force-debian --nodeps -i %s", upgrade: "rpm --force-debian --nodeps -U %s", remove: "rpm --force-debian --nodeps -e %s",
		purge: "rm -rf /etc/%[1]s /var/lib/%[1]s /var/log/%[1]s /run/%[1]s && userdel %[1]s", pattern: "%s-%s-1.x86_64.rpm"}
)

// journey is a machine's: from nothing to nothing.
type journey struct {
	c    *container
	p    packager
	wire *wire
	rows []row
	err  error // the first thing that is not as it should be; nothing is done after it
	ctx  context.Context
}

func (j *journey) see(what, seen string) {
	if j.err != nil {
		return
	}
	log.Printf("%s: %s: %s", j.p.name, what, seen)
	j.rows = append(j.rows, row{j.p.name, what, seen})
}

func (j *journey) fail(format string, args ...any) {
	if j.err == nil {
		j.err = fmt.Errorf(j.p.name+": "+format, args...)
	}
}

// answer of a line inside; "" where something failed before.
func (j *journey) answer(line string) string {
	if j.err != nil {
		return ""
	}
	ctx := j.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	out, err := j.c.run(ctx, line)
	if err != nil {
		j.fail("%w", err)
	}
	return out
}

// expect is an answer that has to be this one.
func (j *journey) expect(line, want string) {
	if got := j.answer(line); j.err == nil && got != want {
		j.fail("%s is %q, want %q", line, got, want)
	}
}

// until is an answer that is waited for.
func (j *journey) until(d time.Duration, line string, accept func(string) bool) (took time.Duration, out string) {
	if j.err != nil {
		return 0, ""
	}
	took, out, err := j.c.until(j.ctx, d, line, accept)
	if err != nil {
		j.fail("%w", err)
	}
	return took, out
}

func has(part string) func(string) bool {
	return func(s string) bool { return strings.Contains(s, part) }
}

// file is a package inside of the tree.
func (j *journey) file(program, version string) string {
	return filepath.Join("/root/packages", fmt.Sprintf(j.p.pattern, program, version))
}

// both programs, in the order in which a network is upgraded.
var both = []string{"xdpmon-coordinator", "xdpmon"}

func (j *journey) walk(ctx context.Context) error {
	j.ctx = ctx
	w, err := newWire(j.c)
	if err != nil {
		return err
	}
	j.wire = w
	defer w.close()
	j.expect("ip link set "+inside+" up", "")
	for _, step := range []func(){j.installed, j.asShipped, j.configured, j.answers, j.upgraded, j.reloaded, j.rotated, j.removed, j.purged} {
		if step(); j.err != nil {
			journal, _ := j.c.run(ctx, "journalctl -b --no-pager -n 60")
			return fmt.Errorf("%w\n%s", j.err, journal)
		}
	}
	return nil
}

func (j *journey) installed() {
	for _, program := range both {
		for _, version := range []string{*older, *newer} {
			from := filepath.Join(*packages, fmt.Sprintf(j.p.pattern, program, version))
			text, err := os.ReadFile(from)
			if err != nil {
				j.fail("read a package (make systemd builds them): %w", err)
				return
			}
			if err := j.c.write(j.file(program, version), string(text), 0o644); err != nil {
				j.fail("%w", err)
				return
			}
		}
	}
	for _, program := range both {
		began := time.Now()
		note := j.answer(fmt.Sprintf(j.p.install, j.file(program, *older)))
		j.expect("systemctl is-active "+program+" || true", "inactive")
		config := "/etc/" + program + "/" + configOf(program)
		j.expect("stat -c '%U:%G %a' "+config, program+":"+program+" 600")
		j.expect("stat -c '%U:%G %a' /etc/"+program, program+":"+program+" 700")
		j.see("install "+program, fmt.Sprintf("%.1f s; started nothing; %s is the user %s's, 0600; it prints: %s", time.Since(began).Seconds(), config, program, printedBy(note, program)))
	}
}

// printedBy are the lines of a packager's answer that are the package's own.
func printedBy(text, program string) string {
	var own []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, program+": ") {
			own = append(own, "`"+strings.TrimSpace(line)+"`")
		}
	}
	if len(own) == 0 {
		return "nothing"
	}
	return strings.Join(own, " ")
}

func configOf(program string) string {
	if program == "xdpmon" {
		return "agent.yaml"
	}
	return "coordinator.yaml"
}

// asShipped: the units start with the configurations of the packages.
func (j *journey) asShipped() {
	for _, program := range both {
		began := time.Now()
		j.answer("systemctl enable --now " + program)
		took := time.Since(began)
		j.expect("systemctl is-active "+program, "active")
		status := j.answer("systemctl show -p StatusText --value " + program)
		user := j.answer("ps -o user:30= -C " + program)
		caps := j.answer("sed -n 's/^CapEff:[[:space:]]*//p' /proc/$(systemctl show -p MainPID --value " + program + ")/status")
		health := j.answer("curl -s http://localhost:" + portOf(program) + "/healthz | tr -d '\\n' | cut -c1-160")
		j.see("start "+program+" with the configuration of the package", fmt.Sprintf("ready after %.1f s as %s, capabilities %s; STATUS `%s`; /healthz `%s`", took.Seconds(), user, caps, status, health))
	}
}

func portOf(program string) string {
	if program == "xdpmon" {
		return "9400"
	}
	return "9401"
}

const (
	agentConfig = `listen: ":9400"
store: {max_age: 168h, max_bytes: 256MiB}
pin: true
bpffs: /run/xdpmon/bpf
outputs:
  - json: /var/log/xdpmon/windows.jsonl
bus: {servers: ["nats://127.0.0.1:4222"], name: host1}
instances:
  - name: uplink
    interfaces: [eth1]
    direction: ingress
    window: 1s
    algorithms: {precision: {}, lean: {}}
  - name: edge
    interfaces: [eth1]
    direction: ingress
    shared: true
`
	pinDropIn = `[Service]
RuntimeDirectoryPreserve=yes
ExecStartPre=+/usr/bin/nsenter --mount=/proc/1/ns/mnt /bin/sh -c 'mkdir -p /run/xdpmon/bpf; mountpoint -q /run/xdpmon/bpf || mount -t bpf bpf /run/xdpmon/bpf; chown xdpmon:xdpmon /run/xdpmon/bpf; chmod 700 /run/xdpmon/bpf'
`
	coordinatorConfig = `listen: ":9401"
store: {max_age: 168h, max_bytes: 256MiB}
outputs:
  - json: /var/log/xdpmon-coordinator/windows.jsonl
bus:
  listen: 127.0.0.1:4222
measurements:
  - name: edge
    window: 1s
    wait: 10s
    algorithms: {precision: {}}
`
)

// configured is the one step by hand: both files, checked, and the BPF file system of docs/agent.md for what is to be upgraded without a gap.
func (j *journey) configured() {
	for path, text := range map[string]string{"/etc/xdpmon/agent.yaml": agentConfig, "/etc/xdpmon-coordinator/coordinator.yaml": coordinatorConfig, "/etc/systemd/system/xdpmon.service.d/pin.conf": pinDropIn} {
		if j.answer("mkdir -p " + filepath.Dir(path) + " && cat > " + path + " <<'END'\n" + text + "END"); j.err != nil {
			return
		}
	}
	agent := j.answer("xdpmon agent --check --config /etc/xdpmon/agent.yaml")
	coordinator := j.answer("xdpmon-coordinator --check --config /etc/xdpmon-coordinator/coordinator.yaml")
	j.answer("systemctl daemon-reload && systemctl restart xdpmon-coordinator xdpmon")
	j.see("edit both configurations, `--check`, restart", fmt.Sprintf("`%s`; `%s`", line1(agent), line1(coordinator)))
}

func line1(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return text
}

const seenMetric = "curl -s http://localhost:9400/metrics | grep '^xdpmon_seen_packets_total{.*uplink'"

// answers are the first of both, from the moment that something passes.
func (j *journey) answers() {
	if j.err != nil {
		return
	}
	j.until(20*time.Second, "curl -s http://localhost:9400/healthz", has(`"status":"ok"`))
	end, err := j.wire.load(j.ctx, *rate)
	if err != nil {
		j.fail("%w", err)
		return
	}
	took, first := j.until(20*time.Second, seenMetric, func(s string) bool { return !strings.HasSuffix(s, " 0") })
	j.see("first answer of the agent, windows of 1 s", fmt.Sprintf("%.1f s after the first packet: `%s`", took.Seconds(), first))
	took, first = j.until(30*time.Second, "curl -s http://localhost:9401/metrics | grep '^xdpmon_seen_packets_total{'", func(s string) bool { return !strings.HasSuffix(s, " 0") })
	health := j.answer("curl -s -o /dev/null -w '%{http_code}' http://localhost:9401/healthz")
	j.see("first answer of the coordinator", fmt.Sprintf("%.1f s later: `%s`; /healthz %s", took.Seconds(), first, health))
	sent := end()
	j.counted("load before the upgrade", ofAgent, sent, 0)
}

// counted compares what was sent with what the windows of a program's output have, whatever file they are in by now.
func (j *journey) counted(what string, from source, sent, before uint64) {
	var windows, cut int
	var total uint64
	for end := time.Now().Add(20 * time.Second); j.err == nil; time.Sleep(500 * time.Millisecond) {
		var err error
		if total, windows, cut, err = j.windows(from); err != nil {
			j.fail("%w", err)
			return
		}
		if total-before >= sent || time.Now().After(end) {
			break
		}
	}
	if j.err == nil && total-before != sent {
		j.fail("%s: %d packets are in %d windows (%d cut) of %s, %d were sent", what, total-before, windows, cut, from.program, sent)
	}
	j.see(what, fmt.Sprintf("%d packets sent, %d in the windows of the output of %s", sent, total-before, from.program))
}

// settled is what a program has counted when nothing passes any more and all of its windows are written.
func (j *journey) settled(from source) (total uint64) {
	for same := 0; same < 6 && j.err == nil; time.Sleep(500 * time.Millisecond) {
		now, _, _, err := j.windows(from)
		if err != nil {
			j.fail("%w", err)
		}
		if same++; now != total {
			total, same = now, 0
		}
	}
	return total
}

// source is where windows are written: the files of a program's output, and the instance that counts.
type source struct{ program, instance string }

var (
	ofAgent       = source{"xdpmon", "uplink"}
	ofCoordinator = source{"xdpmon-coordinator", "edge"}
)

// windows adds up a program's files.
func (j *journey) windows(from source) (packets uint64, windows, cut int, err error) {
	files, err := filepath.Glob(filepath.Join(j.c.root, "var/log", from.program, "windows.jsonl*"))
	if err != nil {
		return 0, 0, 0, err
	}
	for _, name := range files {
		if err := eachWindow(name, func(l line) {
			if l.Algorithm == "precision" && l.Instance == from.instance {
				packets, windows = packets+l.Packets.Seen, windows+1
				if l.Window.Cut {
					cut++
				}
			}
		}); err != nil {
			return 0, 0, 0, err
		}
	}
	return packets, windows, cut, nil
}

type line struct {
	Algorithm, Instance string
	Packets             struct{ Seen uint64 }
	Window              struct{ Cut bool }
}

func eachWindow(path string, f func(line)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		f(l)
	}
	return lines.Err()
}

// upgraded: the coordinator first, then the agent, while packets arrive.
func (j *journey) upgraded() {
	if j.err != nil {
		return
	}
	before, merged := j.settled(ofAgent), j.settled(ofCoordinator)
	_, _, cutBefore, err := j.windows(ofAgent)
	if err != nil {
		j.fail("%w", err)
		return
	}
	end, err := j.wire.load(j.ctx, *rate)
	if err != nil {
		j.fail("%w", err)
		return
	}
	time.Sleep(3 * time.Second)
	for _, program := range both {
		pid := j.answer("systemctl show -p MainPID --value " + program)
		began := time.Now()
		j.answer(fmt.Sprintf(j.p.upgrade, j.file(program, *newer)))
		took := time.Since(began)
		j.expect("systemctl is-active "+program, "active")
		if now := j.answer("systemctl show -p MainPID --value " + program); now == pid {
			j.fail("%s still runs as process %s", program, pid)
		}
		version := j.answer(program + " version | head -n 1")
		if !strings.Contains(version, *newer) {
			j.fail("the version is %s, want %s", version, *newer)
		}
		j.see("upgrade "+program+" under load", fmt.Sprintf("%.1f s; another process runs: `%s`; the edited configuration stayed", took.Seconds(), version))
	}
	j.expect("grep -c windows.jsonl /etc/xdpmon/agent.yaml", "1")
	j.until(30*time.Second, "curl -s http://localhost:9400/healthz", has(`"status":"ok"`))
	time.Sleep(3 * time.Second)
	sent := end()
	j.counted("counted = sent across the upgrades, by the agent", ofAgent, sent, before)
	j.counted("counted = sent across the upgrades, by the coordinator", ofCoordinator, sent, merged)
	if _, _, cut, _ := j.windows(ofAgent); cut != cutBefore {
		j.fail("%d windows were cut", cut-cutBefore)
	}
}

// reloaded: one configuration that is refused, and the same process.
func (j *journey) reloaded() {
	pid := j.answer("systemctl show -p MainPID --value xdpmon")
	j.answer("cp -p /etc/xdpmon/agent.yaml /root/agent.yaml && echo 'wat: 1' >> /etc/xdpmon/agent.yaml && systemctl reload xdpmon; sleep 1")
	refused := j.answer("journalctl -u xdpmon --no-pager -o cat | grep -F wat | tail -n 1")
	j.answer("cat /root/agent.yaml > /etc/xdpmon/agent.yaml && systemctl reload xdpmon; sleep 1")
	j.expect("systemctl show -p MainPID --value xdpmon", pid)
	j.see("reload with a mistake, and without", fmt.Sprintf("the same process; `%s`", refused))
}

// rotated: logrotate itself, with the package's file, under load: the agent continues with a new file, and no window is missing.
func (j *journey) rotated() {
	if j.err != nil {
		return
	}
	before, merged := j.settled(ofAgent), j.settled(ofCoordinator)
	end, err := j.wire.load(j.ctx, *rate)
	if err != nil {
		j.fail("%w", err)
		return
	}
	time.Sleep(2 * time.Second)
	old := j.answer("stat -c %i /var/log/xdpmon/windows.jsonl")
	j.answer("logrotate -f /etc/logrotate.d/xdpmon")
	j.answer("logrotate -f /etc/logrotate.d/xdpmon-coordinator")
	j.until(10*time.Second, "stat -c '%i %s' /var/log/xdpmon/windows.jsonl", func(s string) bool {
		return !strings.HasPrefix(s, old+" ") && !strings.HasSuffix(s, " 0")
	})
	if rotated := j.answer("stat -c %i /var/log/xdpmon/windows.jsonl.1"); rotated != old {
		j.fail("windows.jsonl.1 is file %s, the agent wrote %s", rotated, old)
	}
	j.until(15*time.Second, "stat -c %s /var/log/xdpmon-coordinator/windows.jsonl", func(s string) bool { return s != "0" })
	modes := j.answer("stat -c '%n %U %a' /var/log/xdpmon/* /var/log/xdpmon-coordinator/*")
	sent := end()
	j.see("`logrotate -f` under load", "both write to new files: `"+strings.Join(strings.Split(modes, "\n"), "`, `")+"`")
	j.counted("counted = sent across the rotation, by the agent", ofAgent, sent, before)
	j.counted("counted = sent across the rotation, by the coordinator", ofCoordinator, sent, merged)
}

// left is everything of the names inside, but the packages' files that were brought and what is the operator's own.
const left = `find / -xdev \( -path /proc -o -path /sys -o -path /root -o -path /var/cache \) -prune -o -name '*xdpmon*' -print; grep xdpmon /proc/mounts; getent passwd xdpmon xdpmon-coordinator; getent group xdpmon xdpmon-coordinator; ` +
	`systemctl list-units --all --plain --no-legend 'xdpmon*'; tc filter show dev eth1 ingress; tc filter show dev eth1 egress; ip -d link show eth1 | grep -o 'prog/.*'; true`

func (j *journey) removed() {
	// The program itself has to be asked after it is removed.
	j.answer("cp /usr/bin/xdpmon /root/status")
	attached := j.answer("/root/status status")
	if !strings.Contains(attached, inside) && j.err == nil {
		j.fail("nothing is attached before the removal: %s", attached)
	}
	for _, program := range slices.Backward(both) {
		j.answer(fmt.Sprintf(j.p.remove, program))
		j.expect("systemctl is-active "+program+" || true", "inactive")
	}
	rest := j.answer("/root/status status")
	if strings.Contains(rest, inside) {
		j.fail("attached after the removal: %s", rest)
	}
	if mounts := j.answer("grep xdpmon /proc/mounts || true"); mounts != "" {
		j.fail("mounted after the removal: %s", mounts)
	}
	j.expect("test -s /var/lib/xdpmon/windows.db && test -s /var/log/xdpmon/windows.jsonl && ls /etc/xdpmon", j.keptConfig())
	j.see("remove both", "stopped; `xdpmon status`: `"+line1(rest)+"`; no BPF file system; data, logs and configuration are kept")
}

func (j *journey) keptConfig() string {
	if j.p.name == "rpm" {
		return "agent.yaml.rpmsave"
	}
	return "agent.yaml"
}

func (j *journey) purged() {
	for _, program := range slices.Backward(both) {
		j.answer(fmt.Sprintf(j.p.purge, program))
	}
	j.answer("rm -r /etc/systemd/system/xdpmon.service.d; systemctl daemon-reload; systemctl reset-failed") // the operator's own
	if rest := j.answer(left); rest != "" {
		j.fail("left after the purge: %s", rest)
	}
	how := "asked by the purge"
	if j.p.name == "rpm" {
		how = "by the commands of docs/agent.md, as rpm has no purge"
	}
	j.see("purge both", how+": no file, mount, user, group, unit, filter or program of the names is left")
}
