// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/textproto"
	"slices"
	"strings"
)

// Types of parts.
const (
	shellType      = `text/x-shellscript; charset="us-ascii"`
	nodeConfigType = "application/node.eks.aws"
)

// part is one part of a MIME document, which cloud-init passes to the handler
// of its type.
type part struct {
	header textproto.MIMEHeader
	body   string
}

func newPart(contentType, body string) part {
	return part{textproto.MIMEHeader{"Content-Type": {contentType}}, body}
}

// isMIME reports whether the text is a message of several parts, or says that
// it is.
func isMIME(text string) bool {
	name, _, ok := strings.Cut(strings.TrimLeft(text, " \t\n"), ":")
	return ok && (strings.EqualFold(name, "MIME-Version") || strings.EqualFold(name, "Content-Type"))
}

// split returns the parts of a message, each as it is with its headers. A
// message of another type than multipart is one part.
func split(text string) ([]part, error) {
	message, err := mail.ReadMessage(strings.NewReader(strings.TrimLeft(text, " \t\n")))
	if err != nil {
		return nil, fmt.Errorf("spec.userData begins like a MIME message: %w", err)
	}
	media, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		return nil, fmt.Errorf("spec.userData is a MIME message: Content-Type: %w", err)
	}
	if !strings.HasPrefix(media, "multipart/") {
		header := textproto.MIMEHeader(message.Header)
		header.Del("MIME-Version")
		body, err := io.ReadAll(message.Body)
		if err = errors.Join(err, tidy(header)); err != nil {
			return nil, fmt.Errorf("spec.userData is a MIME message: %w", err)
		}
		return []part{{header, string(body)}}, nil
	}
	var out []part
	for r := multipart.NewReader(message.Body, params["boundary"]); ; {
		next, err := r.NextRawPart()
		if err == io.EOF { // and nothing that wraps it, which is a message cut short
			return out, nil
		}
		var body []byte
		if err == nil {
			body, err = io.ReadAll(next)
		}
		if err == nil {
			err = tidy(next.Header)
		}
		if err != nil {
			return nil, fmt.Errorf("spec.userData is a MIME message: part %d: %w", len(out)+1, err)
		}
		out = append(out, part{next.Header, string(body)})
	}
}

// tidy removes spaces from the ends of headers, and returns an error when one
// has a name or a value that no reader of messages accepts.
func tidy(header textproto.MIMEHeader) error {
	for name, values := range header {
		if name == "" || strings.Trim(name, "-_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") != "" {
			return fmt.Errorf("invalid header name %q", name)
		}
		for i := range values {
			if strings.ContainsFunc(values[i], func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return fmt.Errorf("the header %s has a control character", name)
			}
			values[i] = strings.TrimSpace(values[i])
		}
	}
	return nil
}

// join writes a message of the parts.
func join(parts []part) string {
	var out strings.Builder
	boundary := boundaryOf(parts)
	fmt.Fprintf(&out, "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=%q\n\n", boundary)
	for _, p := range parts {
		fmt.Fprintf(&out, "--%s\n", boundary)
		for _, name := range slices.Sorted(maps.Keys(p.header)) {
			for _, value := range p.header[name] {
				fmt.Fprintf(&out, "%s: %s\n", name, value)
			}
		}
		fmt.Fprintf(&out, "\n%s\n", p.body)
	}
	fmt.Fprintf(&out, "--%s--\n", boundary)
	return out.String()
}

// boundaryOf returns a boundary that no line of a body begins with.
func boundaryOf(parts []part) string {
	boundary := "//"
	within := func(p part) bool { return strings.Contains("\n"+p.body, "\n--"+boundary) }
	for n := 1; slices.ContainsFunc(parts, within); n++ {
		boundary = fmt.Sprintf("//%d", n)
	}
	return boundary
}
