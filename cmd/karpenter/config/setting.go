package config

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"karpenter/cmd/karpenter/explain"
)

// setting is one thing the process can be told, and where it goes.
type setting struct {
	flag    string // without dashes; "" = it has none
	env     string // "" = it has none
	preset  string
	meaning string
	isBool  bool

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
		if _, err := fmt.Fprintf(w, "  %s (%s)\n        %s\n", strings.Join(names, ", "), preset, s.meaning); err != nil {
			return err
		}
	}
	return nil
}

func valid(*Config) error { return nil }

func (s setting) text(field func(*Config) *string) setting {
	s.check = valid
	s.set = func(c *Config, value string) error {
		*field(c) = value
		return nil
	}
	return s
}

func (s setting) oneOf(field func(*Config) *string, values ...string) setting {
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

// loopback takes nothing, or an address that other machines cannot reach.
func (s setting) loopback(field func(*Config) *string) setting {
	s.check = func(c *Config) error {
		if *field(c) == "" {
			return nil
		}
		return explain.Loopback(*field(c))
	}
	s.set = func(c *Config, value string) error {
		*field(c) = value
		return s.check(c)
	}
	return s
}

func (s setting) integer(field func(*Config) *int, least, most int) setting {
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
	s.isBool, s.check = true, valid
	s.set = func(c *Config, value string) error {
		b, err := truth(value)
		*field(c) = b
		return err
	}
	return s
}

// truth reads true and false, and nothing else.
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

func (s setting) list(field func(*Config) *[]string) setting {
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

// millicores stores what is not positive as the preset.
func (s setting) millicores(field func(*Config) *int, preset int) setting {
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
