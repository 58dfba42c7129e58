package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
)

// journal remembers verdicts from run to run: an interrupted run continues, and the test that killed a mutant is tried on it first,
// then on its neighbours.
type journal struct {
	lock  sync.Mutex
	file  *os.File
	known map[string]trial // by key
	by    map[string][]string
}

func openJournal(path string) (*journal, error) {
	j := &journal{known: map[string]trial{}, by: map[string][]string{}}
	was, err := os.Open(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		defer was.Close()
		for rows := bufio.NewScanner(was); rows.Scan(); {
			var tr trial
			if json.Unmarshal(rows.Bytes(), &tr) == nil {
				j.remember(tr)
			}
		}
	}
	j.file, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	return j, err
}

func (j *journal) remember(tr trial) {
	j.known[tr.Key] = tr
	file, _, _ := strings.Cut(tr.Key, ":")
	if tr.Verdict == killed {
		list := slices.DeleteFunc(j.by[file], func(by string) bool { return by == tr.By })
		j.by[file] = append([]string{tr.By}, list...)
	}
}

func (j *journal) write(tr trial) error {
	j.lock.Lock()
	defer j.lock.Unlock()
	j.remember(tr)
	return json.NewEncoder(j.file).Encode(tr)
}

// hints are the test that killed this one, and the two that last killed others of its file.
func (j *journal) hints(s drawn) (list []string) {
	j.lock.Lock()
	defer j.lock.Unlock()
	if tr := j.known[s.key]; tr.Verdict == killed {
		list = append(list, tr.By)
	}
	for _, by := range j.by[s.File] {
		if len(list) < 2 && !slices.Contains(list, by) {
			list = append(list, by)
		}
	}
	return list
}

// verdict of an earlier run. A survivor of an earlier commit is tried again, since a test may have been added since.
func (j *journal) verdict(s drawn, commit string, keep bool) (trial, bool) {
	j.lock.Lock()
	defer j.lock.Unlock()
	tr, ok := j.known[s.key]
	tr.drawn = s
	return tr, ok && (tr.Commit == commit || keep && tr.Verdict != survived)
}
