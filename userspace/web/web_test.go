package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The page and its files are served with their types and the policy; what is no file of it is not there, and the rest is passed on.
func TestFront(t *testing.T) {
	h := Front(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	for path, want := range map[string]struct {
		status int
		kind   string
	}{"/": {200, "text/html; charset=utf-8"}, "/static/index.html": {200, "text/html; charset=utf-8"}, "/static/uplot.js": {200, "text/javascript; charset=utf-8"}, "/static/uplot.LICENSE.txt": {200, "text/plain; charset=utf-8"},
		"/static/none.js": {404, ""}, "/static/none": {404, ""}, "/static/..%2Fweb.go": {404, ""}, "/static/x%2F..%2Findex.html": {404, ""}, "/other": {418, ""}, "/static/": {418, ""}} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want.status || want.kind != "" && w.Header().Get("Content-Type") != want.kind {
			t.Errorf("%s: %d, %s", path, w.Code, w.Header())
		}
		if served := want.status == 200; served != (w.Header().Get("Content-Security-Policy") == policy) || served && (w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Body.Len() == 0) {
			t.Errorf("%s: %s", path, w.Header())
		}
	}
	for name := range media {
		if !strings.HasPrefix(name, ".") {
			t.Errorf("%s is no extension", name)
		}
	}
}
