//! Takes the schemas from the types.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Value, json};

use crate::{
    CLIENT_NOTIFICATIONS, CLIENT_REQUESTS, ErrorDataCode, JsonRpcError, JsonRpcErrorError, JsonRpcMessage,
    JsonRpcNotification, JsonRpcRequest, JsonRpcResponse, RequestId, SERVER_NOTIFICATIONS, SERVER_REQUESTS,
    WireType,
};

const ENVELOPE: [WireType; 8] = [
    WireType::of::<RequestId>(),
    WireType::of::<JsonRpcError>(),
    WireType::of::<JsonRpcErrorError>(),
    WireType::of::<JsonRpcMessage>(),
    WireType::of::<JsonRpcNotification>(),
    WireType::of::<JsonRpcRequest>(),
    WireType::of::<JsonRpcResponse>(),
    WireType::of::<ErrorDataCode>(),
];

/// The file programs carry; the same bytes in every run.
pub fn packed() -> Vec<u8> {
    /// The slowest and smallest.
    const LEVEL: u8 = 10;
    miniz_oxide::deflate::compress_to_vec_zlib(text().as_bytes(), LEVEL)
}

/// The content of the file. Made once, because the types cannot change under a running program.
pub(super) fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let read = definitions(Contract::Deserialize);
        let mut written = definitions(Contract::Serialize);
        // As text, because the order of fields counts too.
        let text = |schema: &Value| schema.to_string();
        written.retain(|name, schema| read.get(name).map(text) != Some(text(schema)));
        json!({ "read": read, "written": written }).to_string()
    })
}

/// All of the wire, whatever its stage: what a surface does not show is taken out when it is exported.
fn definitions(contract: Contract) -> BTreeMap<String, Value> {
    let mut settings = SchemaSettings::draft07();
    settings.contract = contract;
    let mut generator = settings.into_generator();
    for wire in wire_types() {
        (wire.schema)(&mut generator);
    }
    generator.take_definitions(true).into_iter().collect()
}

fn wire_types() -> impl Iterator<Item = WireType> {
    let methods = [CLIENT_REQUESTS, SERVER_REQUESTS, SERVER_NOTIFICATIONS, CLIENT_NOTIFICATIONS];
    let payloads = methods.into_iter().flatten().flat_map(|method| [Some(method.params), method.response]);
    payloads.flatten().chain(ENVELOPE)
}

#[cfg(test)]
mod tests {
    use super::super::REFERENCE;
    use super::*;
    use crate::NoParams;
    use crate::method::Named;

    /// The exporters and the decoder find a schema by the name in the tables.
    #[test]
    fn every_type_is_found_by_its_name() {
        let mut generator = SchemaSettings::draft07().into_generator();
        for wire in wire_types().filter(|wire| wire.name != NoParams::NAME) {
            let schema = (wire.schema)(&mut generator).to_value();
            assert_eq!(schema, json!({ "$ref": format!("{REFERENCE}{}", wire.name) }));
        }
    }
}
