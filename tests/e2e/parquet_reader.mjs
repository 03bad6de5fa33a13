// Reads a Parquet file with a reader that is not ours and prints its rows as JSON; integers as text, because they are 64-bit.
// Usage: node parquet_reader.mjs FILE [COLUMN…]
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'

const [path, ...columns] = process.argv.slice(2)
const file = await asyncBufferFromFile(path)
const rows = await parquetReadObjects({ file, compressors, columns: columns.length > 0 ? columns : undefined })
console.log(JSON.stringify(rows, (_, value) => (typeof value === 'bigint' ? value.toString() : value)))
