package algo

import (
	"slices"
	"strconv"
	"strings"
)

// TwinForm is what a P4 twin has of one parameter. Other values are refused by everything that makes a switch's configuration, in the same words.
type TwinForm struct {
	Key  string
	Has  string            // after "the P4 twin has "
	Fits func(Values) bool // whether it has this value
}

// Just are the only values that a twin has of a parameter, as they are written.
func Just(key string, texts ...string) TwinForm {
	return TwinForm{Key: key, Has: strings.Join(texts, " or "), Fits: func(v Values) bool {
		have := v.Text(key)
		if v.params[key].Type == Int {
			have = strconv.FormatInt(v.Int(key), 10)
		}
		return slices.Contains(texts, have)
	}}
}

// NoForm is the error of a value that the P4 twin has no form for; has is what it has.
func (v Values) NoForm(key, has string) error { return v.Error(key, "the P4 twin has "+has) }

// CheckTwin refuses parameters that the twin has no form for, by name.
func (d *Descriptor) CheckTwin(v Values) error {
	for _, f := range d.Twin {
		if !f.Fits(v) {
			return v.NoForm(f.Key, f.Has)
		}
	}
	return nil
}

// twin configures an algorithm for a part of its twin, which has to have these parameters.
func twin[I any](d *Descriptor, v Values) (I, error) {
	if err := d.CheckTwin(v); err != nil {
		var none I
		return none, err
	}
	return as[I](d, "write P4 of", v, Switch())
}
