// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"karpenter/model"
)

// everyAddress is the address of a host port that need not be written.
const everyAddress = "0.0.0.0"

// parsePorts reads "80/TCP,127.0.0.1:53/UDP".
func parsePorts(value string) ([]model.HostPort, error) {
	parts, err := list(value)
	if err != nil {
		return nil, err
	}
	var out []model.HostPort
	for _, p := range parts {
		port := model.HostPort{IP: everyAddress, Protocol: "TCP"}
		last := p
		if len(p) == 3 && p[0].sign == 0 && p[1].sign == ':' {
			port.IP, last = p[0].text, p[2:]
		}
		if len(last) != 1 || last[0].sign != 0 {
			return nil, fmt.Errorf("invalid port %q; write 80/TCP, or 127.0.0.1:53/UDP", show(p))
		}
		number, protocol, ok := strings.Cut(last[0].text, "/")
		if ok {
			port.Protocol = protocol
		}
		if port.Port, err = parseWhole32(number); err != nil {
			return nil, err
		}
		out = append(out, port)
	}
	return out, nil
}

func ports(ps []model.HostPort) string {
	parts := make([]string, len(ps))
	for i, p := range ps {
		if p.IP != everyAddress {
			parts[i] = inner(p.IP) + ":"
		}
		parts[i] += inner(strconv.Itoa(int(p.Port)) + "/" + p.Protocol)
	}
	return strings.Join(parts, ",")
}

// volumesAt reads "ebs.csi.aws.com 2 [default/data]".
func volumesAt(item []atom) (v model.Volumes, rest []atom, err error) {
	bad := fmt.Errorf("%q are no volumes; write DRIVER 2, or DRIVER 1 [default/claim] where claims are shared", show(item))
	if len(item) < 2 || item[0].sign != 0 || item[1].sign != 0 {
		return v, nil, bad
	}
	v.Driver = item[0].text
	if v.Own, err = parseWhole(item[1].text); err != nil {
		return v, nil, err
	}
	rest = item[2:]
	if len(rest) > 0 && rest[0].sign == '[' {
		shared, used, ok := bracketed(rest)
		if !ok {
			return v, nil, bad
		}
		slices.Sort(shared)
		v.Shared, rest = slices.Compact(shared), rest[used:]
	}
	return v, rest, nil
}

func volumesOf(item []atom) (model.Volumes, error) {
	v, rest, err := volumesAt(item)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%q is too much; volumes are DRIVER 2 [default/claim]", show(rest))
	}
	return v, err
}

func volumes(v model.Volumes) string {
	text := inner(v.Driver) + " " + strconv.Itoa(v.Own)
	if len(v.Shared) == 0 {
		return text
	}
	parts := make([]string, len(v.Shared))
	for i, s := range v.Shared {
		parts[i] = inner(s)
	}
	return text + " [" + strings.Join(parts, " ") + "]"
}

// volumeLimitOf reads "ebs.csi.aws.com 25".
func volumeLimitOf(item []atom) (model.VolumeLimit, error) {
	v, err := volumesOf(item)
	if err == nil && len(v.Shared) > 0 {
		err = fmt.Errorf("%q is too much; the limit of a type is DRIVER 25", show(item))
	}
	return model.VolumeLimit{Driver: v.Driver, Most: v.Own}, err
}

func volumeLimit(l model.VolumeLimit) string {
	return volumes(model.Volumes{Driver: l.Driver, Own: l.Most})
}

// attachedOf reads "ebs.csi.aws.com 2 [default/data] of 25".
func attachedOf(item []atom) (model.Attached, error) {
	v, rest, err := volumesAt(item)
	if err != nil {
		return model.Attached{}, err
	}
	if len(rest) != 2 || !isKeyword(rest[:1], wordOf) {
		return model.Attached{}, fmt.Errorf("%q lacks how many there may be; write DRIVER 2 of 25", show(item))
	}
	limit, err := parseWhole(rest[1].text)
	return model.Attached{Driver: v.Driver, Limit: limit, Own: v.Own, Shared: v.Shared}, err
}

func attached(a model.Attached) string {
	return volumes(model.Volumes{Driver: a.Driver, Own: a.Own, Shared: a.Shared}) + " " + wordOf + " " + strconv.Itoa(a.Limit)
}
