// SPDX-License-Identifier: Apache-2.0

import { Component, h } from 'preact'

const same = (a, b) => Object.keys(a).length === Object.keys(b).length && Object.keys(a).every((k) => typeof a[k] === 'function' || a[k] === b[k])

// memo returns the component, drawn again only if a property that is no function changed.
export function memo(of) {
  return class extends Component {
    shouldComponentUpdate(next) { return !same(this.props, next) }
    render(props) { return h(of, props) }
  }
}
