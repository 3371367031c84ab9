// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// LogOptions is how and where to log.
type LogOptions struct {
	Level        string // debug, info or error
	Outputs      []string
	ErrorOutputs []string // for errors of logging itself
	Commit       string   // added to every entry; "" = not known
}

// NewLog returns a log of one JSON object per line. Of equal messages within a
// second, it writes the first hundred and then every hundredth.
func NewLog(o LogOptions) (logr.Logger, error) {
	level, err := zapcore.ParseLevel(o.Level)
	if err != nil {
		return logr.Logger{}, fmt.Errorf("log level: %w", err)
	}
	config := zap.Config{
		Level:             zap.NewAtomicLevelAt(level),
		DisableCaller:     level != zapcore.DebugLevel,
		DisableStacktrace: true,
		Sampling:          &zap.SamplingConfig{Initial: 100, Thereafter: 100},
		Encoding:          "json",
		EncoderConfig: zapcore.EncoderConfig{
			LevelKey: "level", TimeKey: "time", NameKey: "logger", CallerKey: "caller", MessageKey: "message",
			EncodeLevel:    zapcore.CapitalLevelEncoder,
			EncodeTime:     zapcore.ISO8601TimeEncoder,
			EncodeDuration: zapcore.StringDurationEncoder,
			EncodeCaller:   zapcore.ShortCallerEncoder,
		},
		OutputPaths:      o.Outputs,
		ErrorOutputPaths: o.ErrorOutputs,
	}
	if o.Commit != "" {
		config.InitialFields = map[string]any{"commit": o.Commit}
	}
	log, err := config.Build(zap.WrapCore(func(c zapcore.Core) zapcore.Core { return quietEvents{c} }))
	if err != nil {
		return logr.Logger{}, fmt.Errorf("open log: %w", err)
	}
	out := zapr.NewLogger(log.Named("controller"))
	if o.Commit == "" {
		out.Info("commit is not known: the program was not built from a repository")
	}
	return out, nil
}

// quietEvents drops the debug entries of the event broadcaster, which repeats
// every event.
type quietEvents struct{ zapcore.Core }

func (q quietEvents) With(fields []zapcore.Field) zapcore.Core {
	return quietEvents{q.Core.With(fields)}
}

func (q quietEvents) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if e.Level == zapcore.DebugLevel && strings.HasSuffix(e.LoggerName, ".events") {
		return to
	}
	return q.Core.Check(e, to)
}
