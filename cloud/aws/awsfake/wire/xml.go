// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
)

const (
	ec2Namespace = "http://ec2.amazonaws.com/doc/2016-11-15/"
	iamNamespace = "https://iam.amazonaws.com/doc/2010-05-08/"
)

func (q query) answer(operation string, output any, requestID string) (string, []byte, error) {
	b := &bytes.Buffer{}
	b.WriteString(xml.Header)
	content := reflect.ValueOf(output).Elem()
	if q.ec2 {
		fmt.Fprintf(b, "<%sResponse xmlns=%q><requestId>%s</requestId>", operation, ec2Namespace, requestID)
		if err := q.write(b, content); err != nil {
			return "", nil, err
		}
		fmt.Fprintf(b, "</%sResponse>", operation)
		return "text/xml;charset=UTF-8", b.Bytes(), nil
	}
	fmt.Fprintf(b, "<%sResponse xmlns=%q><%sResult>", operation, iamNamespace, operation)
	if err := q.write(b, content); err != nil {
		return "", nil, err
	}
	fmt.Fprintf(b, "</%sResult><ResponseMetadata><RequestId>%s</RequestId></ResponseMetadata></%sResponse>", operation, requestID, operation)
	return "text/xml", b.Bytes(), nil
}

func (q query) refuse(err smithy.APIError, requestID string, _ http.Header) (string, []byte) {
	b := &bytes.Buffer{}
	b.WriteString(xml.Header)
	if q.ec2 {
		fmt.Fprintf(b, "<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>%s</RequestID></Response>",
			escape(err.ErrorCode()), escape(err.ErrorMessage()), requestID)
		return "text/xml;charset=UTF-8", b.Bytes()
	}
	by := "Sender"
	if err.ErrorFault() == smithy.FaultServer {
		by = "Receiver"
	}
	fmt.Fprintf(b, "<ErrorResponse xmlns=%q><Error><Type>%s</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>%s</RequestId></ErrorResponse>",
		iamNamespace, by, escape(err.ErrorCode()), escape(err.ErrorMessage()), requestID)
	return "text/xml", b.Bytes()
}

// write writes what is inside the value's element. Nil is left out by the
// caller; a list that is empty but not nil is an empty element.
func (q query) write(b *bytes.Buffer, v reflect.Value) error {
	switch {
	case v.Kind() == reflect.Pointer:
		return q.write(b, v.Elem())
	case v.Type() == reflect.TypeFor[time.Time]():
		b.WriteString(v.Interface().(time.Time).UTC().Format("2006-01-02T15:04:05.000Z"))
		return nil
	case v.Kind() == reflect.Struct:
		return q.writeStruct(b, v)
	}
	text, err := scalar(v)
	b.WriteString(escape(text))
	return err
}

func (q query) writeStruct(b *bytes.Buffer, v reflect.Value) error {
	for f, field := range v.Fields() {
		if !f.IsExported() || f.Type == reflect.TypeFor[middleware.Metadata]() || absent(field) {
			continue
		}
		put := q.element
		if field.Kind() == reflect.Slice && field.Type().Elem().Kind() != reflect.Uint8 {
			put = q.list(v.Type().Name(), f.Name)
		}
		if err := put(b, q.names.outName(v.Type().Name(), f.Name, q.ec2), field); err != nil {
			return fmt.Errorf("%s.%s: %w", v.Type().Name(), f.Name, err)
		}
	}
	return nil
}

// list returns what writes the list of that field.
func (q query) list(of, field string) func(*bytes.Buffer, string, reflect.Value) error {
	each := "member"
	if q.ec2 {
		each = "item"
	}
	if name, ok := q.names.elements[of+"."+field]; ok {
		each = name
	}
	return func(b *bytes.Buffer, tag string, v reflect.Value) error {
		b.WriteString("<" + tag + ">")
		for i := range v.Len() {
			if err := q.element(b, each, v.Index(i)); err != nil {
				return err
			}
		}
		b.WriteString("</" + tag + ">")
		return nil
	}
}

func (q query) element(b *bytes.Buffer, tag string, v reflect.Value) error {
	b.WriteString("<" + tag + ">")
	err := q.write(b, v)
	b.WriteString("</" + tag + ">")
	return err
}

// absent reports whether a field is not there: nil, or an enumeration's "".
func absent(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return v.IsNil()
	case reflect.String:
		return v.Len() == 0
	}
	return false
}

// scalar is the text of a string, number, truth value or blob.
func scalar(v reflect.Value) (string, error) {
	switch v.Kind() {
	case reflect.String:
		return v.String(), nil
	case reflect.Bool:
		return strconv.FormatBool(v.Bool()), nil
	case reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10), nil
	case reflect.Float32, reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, v.Type().Bits()), nil
	case reflect.Slice:
		return base64.StdEncoding.EncodeToString(v.Bytes()), nil
	}
	return "", fmt.Errorf("a %s cannot be written", v.Type())
}

func escape(text string) string {
	b := &bytes.Buffer{}
	_ = xml.EscapeText(b, []byte(text)) // a buffer takes everything
	return b.String()
}
