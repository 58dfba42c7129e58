package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/xdpmon/xdpmon/userspace/store"
)

// MoreHeader reports that there are more records than returned.
const MoreHeader = "Xdpmon-More"

// Kept is a snapshot as a record.
type Kept struct {
	End        int64    `json:"end"` // ns since 1970
	Algorithm  string   `json:"algorithm"`
	Instance   string   `json:"instance"`
	Interfaces []string `json:"interfaces"`
	Key        string   `json:"interface"` // report.Identity.Key: the value of interface before 0.1.0
	Snapshot   []byte   `json:"snapshot"`  // in base 64
}

var errMore = errors.New("there is more")

// Records writes stored windows as JSON lines, or with Snapshots their snapshots (Kept); more is true if there are more than the limit.
// `xdpmon history` calls it with the store itself if no agent runs.
func Records(s store.Past, q store.Query, out io.Writer) (more bool, err error) {
	const bytesMost = 32 << 20
	if q.Limit == 0 || q.Limit > mostRecords {
		q.Limit = mostRecords
	}
	if q.Algorithm == "" {
		q.Except = FindingRecords // findings are not windows
	}
	var b bytes.Buffer
	n := 0
	err = s.Each(q, func(r store.Record) error { // collected first: a slow client must not keep the store's pages
		if b.Len() > bytesMost {
			return errMore
		}
		n++
		if q.Snapshots {
			return json.NewEncoder(&b).Encode(Kept{r.End.UnixNano(), r.Algorithm, r.Instance, r.Interfaces, r.Key, r.Snapshot})
		}
		b.Write(r.Line)
		b.WriteByte('\n')
		return nil
	})
	more = errors.Is(err, errMore) || n == mostRecords
	if err != nil && !errors.Is(err, errMore) {
		return false, err
	}
	_, err = out.Write(b.Bytes())
	return more, err
}

// RecordsURL is the path and query of records.
func RecordsURL(q store.Query) string {
	v := url.Values{}
	for name, text := range map[string]string{"algorithm": q.Algorithm, "instance": q.Instance, "interface": q.Interface} {
		if text != "" {
			v.Set(name, text)
		}
	}
	for name, t := range map[string]time.Time{"from": q.From, "to": q.To} {
		if !t.IsZero() {
			v.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	for name, on := range map[string]bool{"newest": q.Newest, "snapshots": q.Snapshots} {
		if on {
			v.Set(name, "true")
		}
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(min(q.Limit, mostRecords)))
	}
	return Prefix + "/records?" + v.Encode()
}

func (a *API) records(w http.ResponseWriter, r *http.Request, q query) {
	past := a.opts.Store()
	if past == nil {
		write(w, problem(http.StatusNotFound, "no store configured, windows are not stored"))
		return
	}
	sq := store.Query{Algorithm: q.text("algorithm"), Instance: q.text("instance"), Interface: q.text("interface"), From: q.time("from"), To: q.time("to"), Limit: q.integer("limit"),
		Newest: q.truth("newest"), Snapshots: q.truth("snapshots")}
	var b bytes.Buffer
	var more bool
	err := a.ask(r.Context(), func() (err error) { more, err = Records(past, sq, &b); return err })
	if err != nil {
		write(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set(MoreHeader, strconv.FormatBool(more))
	Tagged(w, r, b.Bytes())
}
