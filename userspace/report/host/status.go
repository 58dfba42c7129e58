package host

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/xdpmon/xdpmon/loader/status"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Status is a line an attachment.
func Status(list []status.Attachment) []string {
	if len(list) == 0 {
		return []string{"nothing of xdpmon is attached on this host"}
	}
	rows := [][]string{{"INTERFACE", "HOOK", "INSTANCE", "ALGORITHMS", "PACKETS", "HELD BY"}}
	var problems []string
	for _, a := range list {
		name := a.Interface
		if name == "" {
			name = fmt.Sprintf("(index %d, removed or in another network namespace)", a.Index)
		}
		rows = append(rows, []string{name, hookText(a), fmt.Sprint(a.Instance), cmp.Or(strings.Join(a.Algorithms, ", "), "none"),
			report.Human(a.Packets, report.PacketUnit), heldBy(a)})
		if v := a.Verdicts; v != nil {
			problems = append(problems, fmt.Sprintf("%s: instance %d acts on packets: %s dropped, %s marked in this window", name, a.Instance,
				report.Human(v.Dropped, report.PacketUnit), report.Human(v.Marked, report.PacketUnit)))
		}
		if a.Problem != "" {
			problems = append(problems, fmt.Sprintf("%s: program %d: %s", name, a.Program, a.Problem))
		}
	}
	return append(report.Align(rows), problems...)
}

func hookText(a status.Attachment) string {
	text := fmt.Sprintf("%s %s", a.Via, a.Direction)
	if a.Mode != "" {
		text += fmt.Sprintf(" (%s)", a.Mode)
	}
	return text
}

func heldBy(a status.Attachment) string {
	var holders []string
	if a.Pin != "" {
		holders = append(holders, "pin "+a.Pin)
	}
	for _, pid := range a.PIDs {
		holders = append(holders, fmt.Sprintf("process %d", pid))
	}
	return orUnknownHolder(strings.Join(holders, ", "))
}

func orUnknownHolder(text string) string {
	if text == "" {
		return "no process that this user can see"
	}
	return text
}
