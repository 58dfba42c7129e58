package main

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// standing queues of the kinds that the building machine's kernel may lack, drawn by lab/queue/standing at rates that an emulated machine carries. lab/kernels/run puts that study and
// what it calls into the machine if these checks were asked for by name.
const (
	standingStudy = "/standing"
	standingCells = 4 // of each kind: one of each congestion control
)

var standingKinds = []string{"fq_codel", "sfq", "cake"}

// standing is one drawn queue. The study states what it found; no share may be outside of its interval, and no flow below alpha first.
func standing(kind string, n int) (string, error) {
	cmd := exec.Command(standingStudy, "-queue", kind, "-slowest", "2", "-fastest", "12", "-first", fmt.Sprint(n), "-cells", "1")
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin"}
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, shorten(complaint.String()))
	}
	return standingRow(out.String())
}

// standingRow is the study's row of this queue, and its summary.
func standingRow(document string) (string, error) {
	_, rest, found := strings.Cut(document, "|\n| together")
	rows := strings.Split(document[:len(document)-len(rest)], "\n")
	if !found || len(rows) < 3 {
		return "", errors.New("no table: " + shorten(document))
	}
	_, summary, _ := strings.Cut(rest, "\n\n")
	summary, _, _ = strings.Cut(summary, "\n")
	return rows[len(rows)-2] + "| " + summary, nil
}
