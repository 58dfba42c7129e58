package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Problem is an error in the form of RFC 9457.
type Problem struct {
	Type      string `json:"type" doc:"always about:blank: the status states the kind"`
	Title     string `json:"title" doc:"the status as text"`
	Status    int    `json:"status"`
	Detail    string `json:"detail" doc:"what was requested, why it failed, and the remedy"`
	Parameter string `json:"parameter,omitempty" doc:"the query parameter that is wrong"`
}

func (p *Problem) Error() string { return p.Detail }

func problem(status int, format string, args ...any) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

// wrong is the error of an invalid parameter.
func wrong(parameter, format string, args ...any) *Problem {
	p := problem(http.StatusBadRequest, format, args...)
	p.Parameter = parameter
	return p
}

// write writes an error; one that is not a Problem is an internal error.
func write(w http.ResponseWriter, err error) {
	var p *Problem
	if !errors.As(err, &p) {
		p = problem(http.StatusInternalServerError, "%v", err)
	}
	text, _ := json.Marshal(p) // strings and a number
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(text, '\n')) // the client has disconnected
}
