package ordered

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
)

// Members written without reflection have the text that encoding/json gives them.
func TestWritesAsJSON(t *testing.T) {
	var none *Object
	for _, v := range []any{nil, true, false, 0, -7, int64(math.MinInt64), uint64(math.MaxUint64), 1.5, "", "plain ~", "a\"b", `a\b`, "<&>", `"`, `\\`, "<", ">", "&", "~", " ", "é", "\x7f", "tab\t", "\xff",
		"\u2028", []string{"<"}, none, json.RawMessage(`{"a": 1}`)} {
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := writeValue(&got, v); err != nil || got.String()+"\n" != want.String() {
			t.Errorf("%#v: %v: %s, want %s", v, err, got.Bytes(), want.Bytes())
		}
		text, is := v.(string)
		if !is {
			continue
		}
		key, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		inner, o := New(), New()
		inner.Set(text, v)
		o.Set("in", inner)
		whole, err := Marshal(o)
		if want := `{"in":{` + string(key) + ":" + string(bytes.TrimSpace(want.Bytes())) + "}}"; err != nil || string(whole) != want {
			t.Errorf("%v: %s, want %s", err, whole, want)
		}
	}
	bad := New()
	bad.SetPath("a", 1)
	bad.SetPath("a.b", 2)
	o := New()
	o.Set("bad", bad)
	if _, err := Marshal(o); err == nil {
		t.Error("an error of a nested object is lost")
	}
	o = New()
	o.Set("nan", math.NaN())
	if _, err := Marshal(o); err == nil {
		t.Error("NaN is written")
	}
}
