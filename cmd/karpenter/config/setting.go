// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"karpenter/cloud/nodeprice"
	"karpenter/kube/convert"
	"karpenter/model"
)

// setting is one setting of the process: its flag, its variable, and the field
// that it sets.
type setting struct {
	flag    string // without dashes; "" = it has none
	env     string // "" = it has none
	chart   string // the value of the chart it is set by; "" = none
	preset  string
	values  string // which there are, and their unit
	meaning string // without a full stop
	isBool  bool
	also    string // the variable that counts if env is not set; "" = none
	nothing bool   // an empty variable counts as set

	set   func(*Config, string) error // parses and stores
	check func(*Config) error         // judges what is stored
}

func (s setting) name() string {
	if s.flag == "" {
		return s.env
	}
	return "--" + s.flag
}

// Usage describes every setting on w.
func Usage(w io.Writer) error {
	for _, s := range settings() {
		names := make([]string, 0, 2)
		if s.flag != "" {
			names = append(names, "--"+s.flag)
		}
		if s.env != "" {
			names = append(names, s.env)
		}
		preset := s.preset
		if preset == "" {
			preset = `""`
		}
		values := strings.ReplaceAll(s.values, "`", "")
		if _, err := fmt.Fprintf(w, "  %s (%s)\n        %s\n        %s\n", strings.Join(names, ", "), preset, s.meaning, values); err != nil {
			return err
		}
	}
	return nil
}

func valid(*Config) error { return nil }

// quoted lists words for people.
func quoted(words []string) string { return "`" + strings.Join(words, "`, `") + "`" }

// span names the bounds of an integer, except for the bounds of the type.
func span(least, most int) string {
	if most == math.MaxInt32 {
		return fmt.Sprintf("%d or more", least)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

func (s setting) text(field func(*Config) *string) setting {
	s.values = cmp.Or(s.values, "text")
	s.check = valid
	s.set = func(c *Config, value string) error {
		*field(c) = value
		return nil
	}
	return s
}

func (s setting) oneOf(field func(*Config) *string, values ...string) setting {
	s.values = cmp.Or(s.values, quoted(values))
	s.check = func(c *Config) error {
		if !slices.Contains(values, *field(c)) {
			return fmt.Errorf("want one of %s", strings.Join(values, ", "))
		}
		return nil
	}
	s.set = func(c *Config, value string) error {
		*field(c) = value
		return s.check(c)
	}
	return s
}

func (s setting) filled(field func(*Config) *string) setting {
	s.values = cmp.Or(s.values, "a name")
	s.check = func(c *Config) error {
		if *field(c) == "" {
			return errors.New("want a name")
		}
		return nil
	}
	s.set = func(c *Config, value string) error {
		*field(c) = value
		return s.check(c)
	}
	return s
}

func (s setting) integer(field func(*Config) *int, least, most int) setting {
	s.values = cmp.Or(s.values, "an integer, "+span(least, most))
	want := fmt.Errorf("want an integer from %d to %d", least, most)
	s.check = func(c *Config) error {
		if n := *field(c); n < least || n > most {
			return want
		}
		return nil
	}
	s.set = func(c *Config, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil {
			return want
		}
		*field(c) = n
		return s.check(c)
	}
	return s
}

func (s setting) boolean(field func(*Config) *bool) setting {
	s.values = cmp.Or(s.values, quoted([]string{"true", "false"}))
	s.isBool, s.check = true, valid
	s.set = func(c *Config, value string) error {
		b, err := truth(value)
		*field(c) = b
		return err
	}
	return s
}

// truth accepts true and false, and nothing else.
func truth(value string) (bool, error) {
	switch value {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("want true or false")
}

func (s setting) duration(field func(*Config) *time.Duration) setting {
	s.values = cmp.Or(s.values, "a duration, such as `10s` or `1m30s`")
	want := errors.New("want a duration that is not negative, such as 10s or 1m30s")
	s.check = func(c *Config) error {
		if *field(c) < 0 {
			return want
		}
		return nil
	}
	s.set = func(c *Config, value string) error {
		d, err := time.ParseDuration(value)
		if err != nil {
			return want
		}
		*field(c) = d
		return s.check(c)
	}
	return s
}

// price accepts dollars per hour.
func (s setting) price(field func(*Config) *model.Price) setting {
	s.values = cmp.Or(s.values, "dollars per hour, 0 to 1000, such as `0.03`")
	s.check = func(c *Config) error {
		if p := *field(c); p < 0 || p > nodeprice.Most {
			return nodeprice.ErrAmount
		}
		return nil
	}
	s.set = func(c *Config, value string) error {
		p, err := nodeprice.Parse(value)
		if err != nil {
			return err
		}
		*field(c) = p
		return nil
	}
	return s
}

// fraction accepts a number from 0 to 1.
func (s setting) fraction(field func(*Config) *float64) setting {
	s.values = cmp.Or(s.values, "a share of 1, `0` to `1`")
	s.check = func(c *Config) error {
		if v := *field(c); !(v >= 0 && v <= 1) {
			return convert.ErrShare
		}
		return nil
	}
	s.set = func(c *Config, value string) error {
		v, err := convert.Share(value)
		if err != nil {
			return err
		}
		*field(c) = v
		return nil
	}
	return s
}

// fractionOrOff accepts a number from 0 to 1, or an empty value.
func (s setting) fractionOrOff(field func(*Config) **float64) setting {
	s.values = cmp.Or(s.values, "a share of 1, `0` to `1`, or nothing")
	s.check = func(c *Config) error {
		if p := *field(c); p != nil && !(*p >= 0 && *p <= 1) {
			return convert.ErrShare
		}
		return nil
	}
	s.set = func(c *Config, value string) error {
		if *field(c) = nil; value == "" {
			return nil
		}
		v, err := convert.Share(value)
		*field(c) = &v
		return err
	}
	return s
}

func (s setting) list(field func(*Config) *[]string) setting {
	s.values = cmp.Or(s.values, "a list, separated by commas")
	s.check = func(c *Config) error {
		if len(*field(c)) == 0 || slices.Contains(*field(c), "") {
			return errors.New("want a list separated by commas, without empty entries")
		}
		return nil
	}
	s.set = func(c *Config, value string) error {
		*field(c) = strings.Split(value, ",")
		return s.check(c)
	}
	return s
}

func (s setting) bytes(field func(*Config) *int64) setting {
	s.values = cmp.Or(s.values, "an integer, bytes")
	s.check = valid
	s.set = func(c *Config, value string) error {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return errors.New("want an integer, in bytes")
		}
		*field(c) = n
		return nil
	}
	return s
}

// millicores stores the preset for values that are not positive.
func (s setting) millicores(field func(*Config) *int, preset int) setting {
	s.values = cmp.Or(s.values, "an integer, millicores")
	s.preset, s.check = strconv.Itoa(preset), valid
	s.set = func(c *Config, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil {
			return errors.New("want an integer, in millicores")
		}
		if n <= 0 {
			n = preset
		}
		*field(c) = n
		return nil
	}
	return s
}

// HasFlag reports whether the controller has a flag of the name.
func HasFlag(name string) bool {
	return slices.ContainsFunc(settings(), func(s setting) bool { return s.flag != "" && s.flag == name })
}
