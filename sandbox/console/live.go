package console

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"karpenter/sandbox/fleet"
	"karpenter/sandbox/timeline"
)

// What a terminal is told. The picture has a screen of its own, so that what was there before comes back after it.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearRest   = "\x1b[J"
)

// IsTerminal reports whether f is a terminal that can be drawn on.
func IsTerminal(f *os.File) bool {
	return term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// StyleOf finds out from environment variables what terminals can do: NO_COLOR, and the locale's LC_ALL, LC_CTYPE and
// LANG, the first of which counts.
func StyleOf(getenv func(string) string) Style {
	style := Style{Color: getenv("NO_COLOR") == ""}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToLower(getenv(name)); locale != "" {
			style.Unicode = strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
			break
		}
	}
	return style
}

// Live draws the fleet on the terminal, in place, until ctx is done. Title, Since and Hints of the screen are kept; the
// rest is filled in.
func Live(ctx context.Context, terminal *os.File, source Source, notes *Notes, screen Screen) {
	redraw, stop := reasonsToRedraw(ctx)
	defer stop()
	style := StyleOf(os.Getenv)
	out := bufio.NewWriter(terminal)
	fmt.Fprint(out, enterScreen)
	defer func() {
		fmt.Fprint(out, leaveScreen)
		_ = out.Flush()
	}()
	follow(ctx, source, notes, redraw, func(view *fleet.View, happened []timeline.Entry) {
		screen.View, screen.Now = *view, time.Now()
		for _, e := range happened {
			screen.Happened = append(screen.Happened, Stamped{e, screen.Now})
		}
		screen.Happened = screen.Happened[max(0, len(screen.Happened)-happenedAtMost):]
		width, height, err := term.GetSize(int(terminal.Fd()))
		if err != nil || width <= 0 || height <= 0 {
			width, height = 80, 24
		}
		paint(out, strings.TrimSuffix(Render(&screen, width, height, style), "\n"), height)
		_ = out.Flush() // a terminal that went away ends this process by SIGHUP
	})
}

// paint overwrites the screen line by line. Each line is cleared before it is written: clearing behind a line that fills
// the screen's width would take its last letter.
func paint(out io.Writer, picture string, height int) {
	fmt.Fprint(out, home, clearLine, strings.ReplaceAll(picture, "\n", "\r\n"+clearLine))
	if strings.Count(picture, "\n")+1 < height {
		fmt.Fprint(out, "\r\n", clearRest)
	}
}

// reasonsToRedraw asks for a picture when the terminal's size changes, and every second, for ages grow.
func reasonsToRedraw(ctx context.Context) (<-chan struct{}, func()) {
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	second := time.NewTicker(time.Second)
	redraw := make(chan struct{}, 1)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-resized:
			case <-second.C:
			}
			select {
			case redraw <- struct{}{}:
			default:
			}
		}
	}()
	return redraw, func() { signal.Stop(resized); second.Stop() }
}
