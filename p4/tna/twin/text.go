package twin

import (
	"io/fs"

	"github.com/xdpmon/xdpmon/p4"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

// overlay is the sources with generated parts in place of the committed ones.
type overlay struct {
	fs.FS
	parts map[string]string
}

// ReadFile implements fs.ReadFileFS.
func (o overlay) ReadFile(name string) ([]byte, error) {
	if text, ok := o.parts[name]; ok {
		return []byte(text), nil
	}
	return fs.ReadFile(o.FS, name)
}

// Values are a twin's parameters in a form.
func (t *Twin) Values(form Form) (algo.Values, error) {
	d, err := algo.Lookup(t.Algorithm)
	if err != nil {
		return algo.Values{}, err
	}
	set, err := t.Settings(form)
	if err != nil {
		return algo.Values{}, err
	}
	return algo.NewValues(d.Name, d.Params, set)
}

// Check refuses parameters that the twin has no form for, and wrong ones.
func (t *Twin) Check(set map[string]string) error {
	v, err := t.Values(Form{Set: set})
	if err != nil {
		return err
	}
	d, err := algo.Lookup(t.Algorithm)
	if err != nil {
		return err
	}
	_, err = d.P4(v)
	return err
}

// Text is a twin's program in a form.
func (t *Twin) Text(form Form) (fs.FS, error) {
	v, err := t.Values(form)
	if err != nil {
		return nil, err
	}
	d, err := algo.Lookup(t.Algorithm)
	if err != nil {
		return nil, err
	}
	if err := d.CheckTwin(v); err != nil {
		return nil, err
	}
	if !form.Generated {
		return p4.Sources, nil
	}
	parts, err := d.P4(v)
	if err != nil {
		return nil, err
	}
	o := overlay{FS: p4.Sources, parts: map[string]string{}}
	for name, text := range parts {
		o.parts[t.Name+"/"+name+".p4"] = text
	}
	return o, nil
}
