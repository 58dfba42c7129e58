// Package web is the page: static files in the binary, which ask the API (userspace/api) and nothing else. They are plain modules without a build
// step. Charts are uPlot's (static/uplot.js, version 1.6.32 of the npm registry, MIT: static/uplot.LICENSE.txt).
package web

import (
	"embed"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/api"
)

//go:embed static
var files embed.FS

// policy allows the page only files of this binary, and requests to its own address. Inline scripts and frames are not allowed.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

var media = map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".txt": "text/plain; charset=utf-8", ".svg": "image/svg+xml"}

// Front serves the page at / and its files below /static/, and passes on the rest. The page's data are from the API, for authorized clients.
func Front(rest http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { file(w, r, "index.html") })
	mux.HandleFunc("GET /static/{name}", func(w http.ResponseWriter, r *http.Request) { file(w, r, r.PathValue("name")) })
	mux.Handle("/", rest)
	return mux
}

func file(w http.ResponseWriter, r *http.Request, name string) {
	text, err := fs.ReadFile(files, path.Join("static", name))
	kind, known := media[path.Ext(name)]
	if err != nil || !known || strings.Contains(name, "/") {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	api.Tagged(w, r, text)
}
