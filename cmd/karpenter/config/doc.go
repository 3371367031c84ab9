// SPDX-License-Identifier: Apache-2.0

// Package config turns command-line arguments and environment variables into
// a Config, and says precisely what is wrong with those it cannot use.
//
// Every setting has a flag and most have an environment variable. For each
// field by itself, a flag given wins over a variable set, and that over the
// default. A variable set to nothing counts as not set. Unlike upstream, which
// falls back to the default, a variable with an unusable value is an error just
// as a flag is.
package config
