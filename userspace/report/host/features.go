// Package host formats a kernel's features and xdpmon's attachments as lines of text.
package host

import (
	"fmt"

	"github.com/xdpmon/xdpmon/loader/features"
	"github.com/xdpmon/xdpmon/loader/kernel"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Features is a line a feature, with the remedy for what is missing.
func Features(f features.Features) []string {
	lines := []string{fmt.Sprintf("kernel %s, %s, %d possible CPUs", f.Kernel, f.Arch, f.CPUs)}
	lines = append(lines, featureRows(f.Host)...)
	if f.Interface == nil {
		return lines
	}
	i := f.Interface
	lines = append(lines, "", fmt.Sprintf("%s: %s, MTU %d bytes; --hook auto takes %s: %s", i.Name, orUnknown(i.Kind), i.MTU, i.AutoHook, i.Why))
	lines = append(lines, featureRows(i.List)...)
	for _, o := range i.Occupants {
		lines = append(lines, "  there is "+o.String())
	}
	return lines
}

func orUnknown(text string) string {
	if text == "" {
		return "of unknown type"
	}
	return text
}

// featureRows lists the probed features, missing ones with the remedy.
func featureRows(list []features.Feature) []string {
	var rows [][]string
	for _, f := range list {
		rows = append(rows, []string{stateWord(f), f.Name, f.Detail})
	}
	aligned := report.Align(rows)
	var lines []string
	for n, f := range list {
		lines = append(lines, "  "+aligned[n])
		if f.State != kernel.Supported && f.Remedy != "" {
			lines = append(lines, "           "+f.Remedy)
		}
	}
	return lines
}

func stateWord(f features.Feature) string {
	switch f.State {
	case kernel.Supported:
		return "yes"
	case kernel.Unsupported:
		if f.Required {
			return "MISSING"
		}
		return "no"
	}
	return "unknown"
}
