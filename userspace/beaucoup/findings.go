package beaucoup

import (
	"math"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// symptoms maps prefixes of query names to findings. Other queries are the operator's own, and their alerts are no findings.
var symptoms = []struct {
	query   string
	symptom finding.Symptom
	what    string
}{
	{"port-scan", finding.Scanning, "ports of one host that connections are opened to"},
	{"host-scan", finding.Scanning, "hosts that connections are opened to"},
	{"scanner", finding.Scanning, "ports that connections are opened to"},
	{"superspreader", finding.Scanning, "hosts that it sends to"},
	{"syn-flood", finding.Flooded, "connections that are opened, of different addresses and ports"},
	{"ddos-victim", finding.FloodedByMany, "sources that send to it"},
}

const (
	certain      = .95 // confidence of an alert from which on it is a finding
	collidedMost = .1
)

// findings are the alerts that are certain, and those of earlier windows whose keys go on. Their headline is how many attributes there were so far.
func findings(l report.Line) (seen finding.Seen) {
	thresholds := map[string]float64{}
	finding.Rows(l.Report, "queries", func(r finding.Row) { thresholds[r.Text("query")] = r.Num("threshold") })
	add := func(r finding.Row, value finding.Estimate, evidence string) {
		for _, s := range symptoms {
			if !strings.HasPrefix(r.Text("query"), s.query) {
				continue
			}
			key := keyOf(r.Text("key"))
			subject, about := subjectOf(s.symptom, key)
			m := finding.New(l, s.symptom, subject, value, s.what, "beaucoup."+evidence+"["+r.Text("query")+"]")
			m.Certain, m.Bound = true, thresholds[r.Text("query")]/2 // the confidence refers to half of the threshold
			m.Blames = []finding.Blame{{Source: key["src"], Destination: key["dst"], Flow: about}}
			seen.Measures = append(seen.Measures, m)
			return
		}
	}
	finding.Rows(l.Report, "alerts", func(r finding.Row) {
		value, known := totalOf(r)
		if !known {
			value = finding.Estimate{Value: r.Num("count"), Low: r.Num("count_low"), High: r.Num("count_high"), Unit: report.Attributes}
		}
		if r.Num("confidence") >= certain || value.Low > thresholds[r.Text("query")]/2 {
			add(r, value, "alerts")
		}
	})
	finding.Rows(l.Report, "counting", func(r finding.Row) {
		if value, known := totalOf(r); known && r.Num("new") > 0 && value.Low > thresholds[r.Text("query")]/2 {
			add(r, value, "counting")
		}
	})
	seen.Measures = append(seen.Measures, finding.Small(l, float64(l.Lost["collided"]), finding.Num(l.Report, "coupons_drawn"), collidedMost, "share of coupons whose slot another key occupies",
		"raise beaucoup.entries, or ask fewer queries (xdpmon plan beaucoup)", "beaucoup.lost.collided"))
	return seen
}

// totalOf a row; false where it is unknown, or has no upper end.
func totalOf(r finding.Row) (finding.Estimate, bool) {
	e := finding.Estimate{Value: r.Num("total"), Low: r.Num("total_low"), High: r.Num("total_high"), Unit: report.Attributes}
	return e, !math.IsNaN(e.Value + e.Low + e.High)
}

// keyOf splits "src=10.1.2.3 dst=10.4.5.6 dport=80".
func keyOf(text string) map[string]string {
	key := map[string]string{}
	for word := range strings.FieldsSeq(text) {
		if name, value, ok := strings.Cut(word, "="); ok {
			key[name] = value
		}
	}
	return key
}

// subjectOf is the host that scans, or that is flooded.
func subjectOf(s finding.Symptom, key map[string]string) (subject finding.Subject, about string) {
	if s == finding.Scanning {
		if key["dst"] != "" {
			about = "it scans " + key["dst"]
		}
		return finding.Subject{Type: finding.Host, Name: key["src"]}, about
	}
	if port := key["dport"]; port != "" {
		name := key["dst"] + ":" + port
		if strings.Contains(key["dst"], ":") {
			name = "[" + key["dst"] + "]:" + port
		}
		return finding.Subject{Type: finding.Service, Name: name}, ""
	}
	return finding.Subject{Type: finding.Host, Name: key["dst"]}, ""
}
